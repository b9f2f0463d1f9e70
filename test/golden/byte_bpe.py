"""Golden files of byte-level BPE, by the tokenizers package.

    python3 test/golden/byte_bpe.py

writes byte_bpe/: vocab.json and merges.txt, trained on text.txt, and strings.json, hard strings with
their ids. With a folder and a program it compares all of Unicode and 10,000 random strings instead:

    python3 test/golden/byte_bpe.py FOLDER build/fathom

FOLDER has a vocab.json and a merges.txt, of GPT-2 say. Needs tokenizers.
"""

import json
import os
import random
import subprocess
import sys
import tempfile

from tokenizers import ByteLevelBPETokenizer

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "byte_bpe")
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
VOCAB_SIZE = 700
POINTS = [c for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF]
POOLS = [
    "abcdefghij XYZ'",
    "  \t\u00a0\u3000\x0b\x1c\x85\u200a",
    "0123456789½²٣Ⅷ",
    "'s't're've'm'll'd 'S",
    "!?.,;:-_()[]{}\"",
    "äöüßéèñçÅ",
    "日本語中文한국어",
    "😀👍🏽👩‍👩‍👧‍👦🇩🇪",
    "\u0300\u0301\u200d\u200b\ufeff",
]
HARD = [
    "", " ", "  ", "   a", "a   ", "a\n\nb", "\n", " \n ", "\t\ta", "it's", "IT'S we'll they've I'd I'm you're don't",
    "'s", "''s", " 's", "'", "' s", "a'", "100,000.00 km/h", "x=1;y=2", "<s>", "</s> <unk>", "<|endoftext|>",
    "Ġthe Ċ", "…—–", "e\u0301e\u0300", "\u00a0\u00a0a", "a\u3000b", "\x1c\x1d", "\ufffd", "ﬁve ﬂoors", "İstanbul ǅ ß",
    "٣٤٥ ४५ Ⅷ ½ ²", "ᲊ Ƛꟛ \U000105c0 \U00010d40\U00010d4a", "=" * 70, "ab" * 40, " " * 40 + "x",
]


def random_string():
    text = ""
    for _ in range(random.randint(0, 12)):
        if random.random() < 0.2:
            text += "".join(chr(random.choice(POINTS)) for _ in range(random.randint(1, 5)))
        else:
            pool = random.choice(POOLS)
            text += "".join(random.choice(pool) for _ in range(random.randint(1, 8)))
    return text


def write():
    tokenizer = ByteLevelBPETokenizer()
    with open(os.path.join(HERE, "text.txt"), encoding="utf-8") as lines:
        tokenizer.train_from_iterator(
            (line.rstrip("\n") for line in lines), vocab_size=VOCAB_SIZE, min_frequency=2,
            special_tokens=SPECIAL, show_progress=False)
    tokenizer.save_model(HERE)
    plain = ByteLevelBPETokenizer(os.path.join(HERE, "vocab.json"), os.path.join(HERE, "merges.txt"))
    strings = HARD + [random_string() for _ in range(300)]
    with open(os.path.join(HERE, "strings.json"), "w", encoding="utf-8") as out:
        rows = [json.dumps({"text": text, "ids": plain.encode(text).ids}) for text in strings]
        out.write("[\n" + ",\n".join(rows) + "\n]\n")


def every_point():
    """Each character in a row with its neighbours, and between a letter, a digit, a blank and an apostrophe."""
    points = [chr(c) for c in POINTS if c not in (10, 13)]
    for i in range(0, len(points), 200):
        yield "".join(points[i:i + 200])
    for i in range(0, len(points), 100):
        yield "".join(f"a{c}1{c} {c}'s" for c in points[i:i + 100])


def as_line(text):
    """A line of a text file: a carriage return at its end would belong to the end of the line."""
    return text.replace("\n", " ").rstrip("\r")


def compare(folder, fathom):
    vocab, merges = os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt")
    tokenizer = ByteLevelBPETokenizer(vocab, merges)
    lines = [*every_point(), *(as_line(random_string()) for _ in range(10000))]
    with tempfile.TemporaryDirectory() as temp:
        text, data = os.path.join(temp, "text"), os.path.join(temp, "data")
        with open(text, "wb") as out:
            out.write("".join(line + "\n" for line in lines).encode())
        subprocess.run([fathom, "prepare", "--train-text", text, "--tokenizer", vocab, "--out", data],
                       check=True, stderr=subprocess.DEVNULL)
        show = [fathom, "data", "show", data, "--count", str(len(lines))]
        ids = subprocess.run([*show, "--as", "ids"], check=True, capture_output=True, text=True).stdout.split("\n")
        back = subprocess.run([*show, "--as", "text"], check=True, capture_output=True).stdout
    wrong = [line for line, got in zip(lines, ids) if [int(i) for i in got.split()] != tokenizer.encode(line).ids]
    for line in wrong[:5]:
        print("other ids:", repr(line[:60]))
    exact = back == "".join(line + "\n" for line in lines).encode()
    print(f"{len(lines)} lines, {len(wrong)} with other ids, text comes back {'exactly' if exact else 'CHANGED'}")
    return 1 if wrong or not exact else 0


if __name__ == "__main__":
    random.seed(1)
    sys.exit(compare(*sys.argv[1:]) if len(sys.argv) > 1 else write())
