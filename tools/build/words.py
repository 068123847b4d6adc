"""The words that readers of TensorFlow's documentation stumble over: CONTRIBUTING.md, "Words"."""

import re

WORDS = {
    r"at once(?! it)": "eager (mode); at the same time; immediately",
    r"whole numbers?": "integer",
    r"products? of matrices": "matmul",
    r"turn by turn|a turn of the loop|loops? of \w+ turns|whose turns|another turn": "iteration",
    r"examples of (?:a|the) batch|batch's examples|inside of each example|for an example": (
        "batch element"
    ),
    r"what is no(?:t a)? number|what is no \w+": "NaN and infinity; anything but a ...",
    r"(?<!there )(?:is|are|was|were) no (?!longer\b|more\b)": "is not a",
    r"(?:has|have) not an?\b": "has no",
    r"are to be|is to be": "must be",
    r"and its like|and the like": "such as, before the example",
    r"in one house": "say what it is",
    r"for want of|of one's own|one's own": "your own",
    r"turns? out of": "say it directly",
}
"""What to write instead of what a pattern finds."""

LONGEST_SENTENCE = 25


def plain(block: str) -> str:
    """Takes code, targets of links and marks away; code and a shape count as one word each."""
    block = re.sub(r"(`+).*?\1", "CODE", block)
    block = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block)
    block = re.sub(r"\[[^\[\]]*, [^\[\]]*\]", "SHAPE", block)
    block = re.sub(r"\*\*|<[^>]+>", "", block)
    return re.sub(r"^(?:[-*] |\d+\. |#+ )", "", block)


def sentences(block: str) -> list[str]:
    """Returns the sentences of a paragraph; a colon or a semicolon ends one, too."""
    return re.split(r"(?<=[.!?:;])\s+", plain(block))


def misused(block: str) -> list[str]:
    """Returns what is wrong with the words of a paragraph, and what to write."""
    text = plain(block)
    return [
        f"“{match.group()}”: write {instead}"
        for pattern, instead in WORDS.items()
        if (match := re.search(rf"\b(?:{pattern})", text, re.I))
    ]


def long_sentences(block: str) -> list[str]:
    """Returns the sentences of a paragraph that are too long, with their words."""
    return [
        f"{count} words, at most {LONGEST_SENTENCE}: {sentence}"
        for sentence in sentences(block)
        if (count := len(sentence.split())) > LONGEST_SENTENCE
    ]
