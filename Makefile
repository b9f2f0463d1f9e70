# The handle of the build; the work is done by CMake and Ninja. "make help" lists what there is.

CMAKE_FLAGS ?=

.PHONY: all help test test-cuda test-cpus test-mpi test-faults test-kills test-malloc test-threads test-valgrind fuzz mutants demo demo-compare bench install uninstall format lint clean
.DEFAULT_GOAL := all

all: build/build.ninja ## build build/fathom
	cmake --build build --target fathom

help: ## this list
	@awk -F ' ## ' '/^[a-z-]+:.* ## /{sub(/:.*/, "", $$1); sub(/^all$$/, "", $$1); printf "make %-14s %s\n", $$1, $$2}' Makefile

# Each build folder is configured once; Ninja runs CMake again when its files change.
build/build.ninja: | packages-build
	cmake -S . -B build -G Ninja $(CMAKE_FLAGS)

build-asan/build.ninja: | packages-build
	cmake -S . -B build-asan -G Ninja -DFATHOM_SANITIZE=ON $(CMAKE_FLAGS)

build-races/build.ninja: | packages-build
	cmake -S . -B build-races -G Ninja -DFATHOM_CUDA=OFF -DFATHOM_RACES=ON $(CMAKE_FLAGS)

build-fuzz/build.ninja: | packages-fuzz
	cmake -S . -B build-fuzz -G Ninja -DFATHOM_FUZZ=ON -DFATHOM_TESTS=OFF -DFATHOM_CUDA=OFF \
		-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ $(CMAKE_FLAGS)

build-cuda/build.ninja: | packages-build
	cmake -S . -B build-cuda -G Ninja -DFATHOM_CUDA=ON $(CMAKE_FLAGS)

.PHONY: packages-build packages-test packages-lint packages-demo packages-fuzz
packages-build:
	@scripts/install-packages build
packages-test:
	@scripts/install-packages build test
packages-lint:
	@scripts/install-packages build lint
packages-demo:
	@scripts/install-packages build demo
packages-fuzz:
	@scripts/install-packages build fuzz

# --no-tests=error: a build without tests must not look like success.
CTEST = ctest -j $$(nproc) --output-on-failure --no-tests=error

test: packages-test ## all tests, as built for use and again under the sanitizers
	$(MAKE) --no-print-directory build/build.ninja build-asan/build.ninja
	cmake --build build
	$(CTEST) --test-dir build
	cmake --build build-asan
	$(CTEST) --test-dir build-asan

test-cuda: packages-test ## the tests of the CUDA backend; fails where there is no NVIDIA GPU
	$(MAKE) --no-print-directory build-cuda/build.ninja
	cmake --build build-cuda
	FATHOM_NEED_GPU=1 $(CTEST) --test-dir build-cuda -R 'cuda|test_top|test_decode'

test-mpi: packages-test ## the tests of several ranks, by Open MPI and by MPICH
	@scripts/install-packages mpich
	cmake -S . -B build-openmpi -G Ninja -DFATHOM_CUDA=OFF -DFATHOM_MPI=ON -DMPI_C_COMPILER=mpicc.openmpi $(CMAKE_FLAGS)
	cmake -S . -B build-mpich -G Ninja -DFATHOM_CUDA=OFF -DFATHOM_MPI=ON -DMPI_C_COMPILER=mpicc.mpich $(CMAKE_FLAGS)
	cmake --build build-openmpi --target fathom
	cmake --build build-mpich --target fathom
	FATHOM_MPIRUN=mpirun.openmpi ctest --output-on-failure --no-tests=error --test-dir build-openmpi -R 'test_(ranks|pipeline)$$'
	FATHOM_MPIRUN=mpirun.mpich ctest --output-on-failure --no-tests=error --test-dir build-mpich -R 'test_(ranks|pipeline)$$'

test-faults: packages-test ## every operation on files fails, or is the last one before a kill (half an hour)
	$(MAKE) --no-print-directory build/build.ninja
	cmake --build build --target fathom faulty_files
	FATHOM_FAULTS=all sh test/test_faults.sh $$PWD/build/fathom

test-kills: packages-test all ## 1,000 kills of training at random times
	sh test/kills.sh $$PWD/build/fathom 1000

test-cpus: ## tests of kernels on emulated processors: older x86-64, 64-bit ARM (three quarters of an hour)
	scripts/test-cpus

test-malloc: packages-test build/build.ninja ## memory that runs out, at every place in every verb (half an hour)
	cmake --build build
	SAMPLE=1000 sh test/test_malloc.sh $(CURDIR)/build/fathom

# What several threads do at the same time: batches ahead, the live page; cutting text, training, generation.
RACES = test_data_batch test_watch
test-threads: packages-test build-races/build.ninja ## races between threads, by ThreadSanitizer
	cmake --build build-races --target fathom $(RACES)
	OMP_NUM_THREADS=1 $(CTEST) --test-dir build-races -R "^($$(echo $(RACES) | tr ' ' '|'))$$"
	scripts/race-verbs $(CURDIR)/build-races/fathom

test-valgrind: build/build.ninja ## every verb at toy size under valgrind
	@scripts/install-packages build valgrind
	cmake --build build --target fathom
	scripts/valgrind-verbs $(CURDIR)/build/fathom

SECONDS ?= 60
fuzz: build-fuzz/build.ninja ## every reader against made-up input, SECONDS=60 each, or RUNS=N executions
	cmake --build build-fuzz --target fuzz
	scripts/fuzz $(SECONDS)

mutants: packages-test ## seeded mistakes, and which tests notice them (hours; goes on where it stopped)
	scripts/mutants

demo: packages-demo all ## train, translate, score and draw, from nothing, in minutes
	build/fathom demo

demo-compare: packages-demo all ## the same for plain Post-LN too, both curves in one picture
	build/fathom demo --compare

bench: all ## how fast training is on this machine
	build/fathom bench train --encoder-layers 6 --decoder-layers 6 --profile
	build/fathom bench train --encoder-layers 18 --decoder-layers 18 --d-model 64 --ffn-dim 128 --heads 2

PREFIX ?= /usr/local
install: all ## the program, manual pages and completion for shells below PREFIX=/usr/local
	scripts/install $(PREFIX)

uninstall: all ## takes away what "make install" has put below PREFIX
	scripts/install --remove $(PREFIX)

format: packages-lint ## bring all sources into shape
	scripts/format

lint: packages-lint build/build.ninja ## clang-tidy and cppcheck
	scripts/lint build

clean: ## remove what was built
	rm -rf build build-asan build-cuda build-arm64 build-fuzz build-races build-mutants build-openmpi build-mpich
