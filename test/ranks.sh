# What the tests of many ranks share, after common.sh: $launch K COMMAND... runs K ranks on this machine, by the
# library that the program was linked with; FATHOM_MPIRUN names another mpirun.
ldd "$fathom" | grep -q 'libmpi' || {
    echo "skipped: this fathom was built without MPI" >&2
    exit 77
}
mpirun=${FATHOM_MPIRUN:-mpirun}
command -v "$mpirun" > /dev/null || {
    echo "skipped: no $mpirun" >&2
    exit 77
}
# Open MPI: as root, more ranks than cores, this machine only; MPICH knows none of these names
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl=self,vader OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_plm_rsh_agent=sh
# the libraries of MPI keep memory to the end
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

# MPICH's launcher kills all at once when one has died: what they have to say of it is lost
hasty=no
! "$mpirun" --version 2> /dev/null | grep -q HYDRA || hasty=yes

launch() { # ranks, command...
    ranks=$1
    shift
    timeout 120 "$mpirun" -np "$ranks" "$@"
}

same() { # run, run: the same last checkpoint
    for file in model.safetensors optimizer.safetensors; do
        cmp "$1/checkpoints/last/$file" "$2/checkpoints/last/$file" || fail "$1 and $2 end with other bits"
    done
}

# a log without the clock, and what hangs on it
numbers() { sed 's/"wall":.*//; s/"wps":.*"tokens"/"tokens"/; s/"path".*//' "$1/log.jsonl" | grep -v -e '"type":"start"' -e 'is slow: the others wait'; }
