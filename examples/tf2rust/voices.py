"""Words that a program speaks: sounds of a second at 16,000 samples, each by a voice of its own.

A voice is pulses and noise behind resonances, as in formant synthesis (D. Klatt, Software for a
cascade/parallel formant synthesizer, 1980). What a word is made of is in `WORDS`, and how each
part of it sounds in `_SOUNDS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

RATE = 16000
Sound: TypeAlias = npt.NDArray[np.float64]
Random: TypeAlias = np.random.Generator

# How often a voice changes, in samples, and the frames in which its spectrum is shaped.
_STEP, _FRAME = 80, 512
_HOP = _FRAME // 2
_TIME = np.arange(0, RATE + _STEP, _STEP) / RATE
# Which of these times a frame is shaped at.
_AT = (np.arange(1 + (RATE + _HOP) // _HOP) * _HOP // _STEP).clip(max=len(_TIME) - 1)
_FREQUENCY = np.fft.rfftfreq(_FRAME, 1 / RATE)
_WINDOW = np.sin(np.pi * (np.arange(_FRAME) + 0.5) / _FRAME)
_BANDWIDTHS = (70, 100, 140, 250, 300)


@dataclass(frozen=True)
class _Part:
    """A part of a word.

    Attributes:
        seconds: How long it is.
        formants: Its first three resonances in Hz, of a man's voice.
        voice: How loud the pulses are.
        breath: How loud noise from the throat is.
        hiss: How loud noise from the mouth is.
        band: Where that noise is loudest, and how wide it is, in Hz.
    """

    seconds: float
    formants: tuple[float, float, float]
    voice: float = 0.0
    breath: float = 0.0
    hiss: float = 0.0
    band: tuple[float, float] = (4000, 2000)


def _vowel(first: float, second: float, third: float, seconds: float = 0.12) -> tuple[_Part, ...]:
    return (_Part(seconds, (first, second, third), 1, 0.02),)


def _stop(
    place: tuple[float, float, float], band: tuple[float, float], voiced: bool
) -> tuple[_Part, ...]:
    closed = _Part(0.055, place, 0.12 if voiced else 0)
    burst = _Part(0.012, place, 0, 0.1, 0.5, band)
    return (closed, burst) if voiced else (closed, burst, _Part(0.035, place, 0, 0.35, 0.1, band))


_LIPS, _TEETH, _PALATE = (350, 900, 2200), (350, 1800, 2700), (330, 2000, 2300)
_AT_LIPS, _AT_TEETH, _AT_PALATE = (900, 1200), (4200, 2200), (1900, 700)
_SOUNDS: dict[str, tuple[_Part, ...]] = {
    "ee": _vowel(280, 2290, 3010),
    "i": _vowel(390, 1990, 2550, 0.08),
    "e": _vowel(540, 1840, 2480),
    "a": _vowel(680, 1720, 2410),
    "ah": _vowel(740, 1120, 2440),
    "aw": _vowel(580, 860, 2410),
    "u": _vowel(440, 1020, 2240, 0.08),
    "oo": _vowel(310, 900, 2240),
    "uh": _vowel(640, 1200, 2390),
    "er": _vowel(490, 1350, 1700),
    "ay": _vowel(500, 1950, 2550, 0.09) + _vowel(330, 2200, 2800, 0.08),
    "ie": _vowel(760, 1250, 2500, 0.11) + _vowel(380, 2050, 2650, 0.08),
    "ow": _vowel(760, 1350, 2500, 0.11) + _vowel(420, 950, 2300, 0.08),
    "oh": _vowel(540, 1000, 2350, 0.1) + _vowel(380, 820, 2250, 0.09),
    "y": (_Part(0.06, (280, 2200, 3000), 0.6),),
    "w": (_Part(0.06, (310, 700, 2200), 0.6),),
    "r": (_Part(0.07, (340, 1150, 1550), 0.6),),
    "l": (_Part(0.07, (360, 1050, 2750), 0.6),),
    "n": (_Part(0.075, (280, 1650, 2550), 0.35),),
    "m": (_Part(0.075, (280, 1100, 2200), 0.35),),
    "s": (_Part(0.12, _TEETH, 0, 0, 0.35, (5800, 1500)),),
    "sh": (_Part(0.12, (320, 1900, 2500), 0, 0.05, 0.4, (3300, 1200)),),
    "z": (_Part(0.09, _TEETH, 0.25, 0, 0.2, (5800, 1500)),),
    "f": (_Part(0.1, _LIPS, 0, 0.03, 0.08, (4500, 4500)),),
    "v": (_Part(0.06, _LIPS, 0.35, 0.02, 0.05, (4500, 4500)),),
    "h": (_Part(0.06, (500, 1500, 2500), 0, 0.4),),
    "p": _stop(_LIPS, _AT_LIPS, False),
    "b": _stop(_LIPS, _AT_LIPS, True),
    "t": _stop(_TEETH, _AT_TEETH, False),
    "d": _stop(_TEETH, _AT_TEETH, True),
    "k": _stop(_PALATE, _AT_PALATE, False),
    "g": _stop(_PALATE, _AT_PALATE, True),
}
# Each as some say it; a sound after a slash may be missing.
WORDS: dict[str, tuple[str, ...]] = {
    "yes": ("y e s", "y a s"),
    "no": ("n oh", "n aw oo", "n uh oo"),
    "up": ("uh /p", "ah /p"),
    "down": ("d ow n", "d a oo n"),
    "left": ("l e f /t", "l e f t"),
    "right": ("r ie /t", "r ie t", "r ah i t"),
    "go": ("g oh", "g aw oo", "g uh oo"),
    "stop": ("s t ah /p", "s t aw /p"),
}
_VOWELS = ("ee", "i", "e", "a", "ah", "aw", "u", "oo", "uh", "er", "ay", "ie", "ow", "oh")
_OTHER_VOWELS = ("ee", "i", "oo", "er", "ay")


def word(random: Random, name: str) -> Sound:
    """Returns a word of `WORDS`, spoken by a voice that is made for it."""
    said = WORDS[name][random.integers(len(WORDS[name]))].split()
    return _spoken(random, [s.strip("/") for s in said if s[0] != "/" or random.random() < 0.7])


def other_word(random: Random) -> Sound:
    """Returns some syllables that are not a word of `WORDS`: one has a vowel that these lack."""
    count = int(random.integers(1, 4))
    vowels = _OTHER_VOWELS if count == 1 else _VOWELS
    rest = sorted(set(_SOUNDS) - set(_VOWELS))
    said: list[str] = []
    for _ in range(count):
        said += [rest[random.integers(len(rest))]] * (random.random() < 0.8)
        said += [vowels[random.integers(len(vowels))]]
        said += [rest[random.integers(len(rest))]] * (random.random() < 0.5)
    return _spoken(random, said)


def _spoken(random: Random, said: Sequence[str]) -> Sound:
    """Returns some sounds of speech, one after the other, somewhere within the second."""
    parts = [part for name in said for part in _SOUNDS[name]]
    pace = random.uniform(0.75, 1.5) * random.uniform(0.8, 1.25, len(parts))
    lengths = np.array([part.seconds for part in parts]) * pace
    # The last vowel of a word is longer.
    voiced = [i for i, part in enumerate(parts) if part.voice == 1]
    lengths[voiced[-1] if voiced else -1] *= random.uniform(1, 2)
    lengths *= min(1, 0.9 / lengths.sum())
    start = random.uniform(0.02, 0.98 - lengths.sum())
    index = np.searchsorted(start + np.cumsum(lengths), _TIME).clip(max=len(parts) - 1)
    end = start + lengths.sum()
    inside = ((start <= _TIME) & (end >= _TIME)).astype(float)

    def track(values: Sequence[float], seconds: float) -> Sound:
        """Returns what the parts say over time, without jumps."""
        flat = np.asarray(values, float)[index]
        width = max(1, round(seconds * RATE / _STEP))
        padded = np.pad(flat, (width, width), "edge")
        kernel = np.hanning(width + 2)[1:-1]
        return np.convolve(padded, kernel / kernel.sum(), "same")[width : width + len(flat)]

    size = random.uniform(0.78, 1.12)
    near = random.uniform(0.05, 0.11)
    sizes = size * random.normal(1, 0.06, 3)
    formants = [
        track([part.formants[i] * random.normal(1, 0.08) for part in parts], near) / sizes[i]
        for i in range(3)
    ]
    formants += [np.full(len(_TIME), 3500 / size), np.full(len(_TIME), 4500 / size)]
    loud = random.uniform(0.6, 1.3, len(parts))
    gains = [
        track([getattr(p, name) * g for p, g in zip(parts, loud, strict=True)], 0.012) * inside
        for name in ("voice", "breath", "hiss")
    ]
    bands = [track([part.band[i] for part in parts], 0.01) / size**0.5 for i in range(2)]
    voice, breath, hiss = (_samples(gain) for gain in gains)
    source = _pulses(random, size) * voice
    noise = random.normal(size=(2, RATE))
    source += noise[0] * (breath + voice * random.uniform(0, 0.08)) * 0.3
    throat = _resonances(random, [formant[_AT] for formant in formants])
    mouth = np.exp(-(((_FREQUENCY - bands[0][_AT, None]) / bands[1][_AT, None]) ** 2))
    return _shaped((source, throat), (noise[1] * hiss * random.uniform(0.6, 1.6), mouth))


def _samples(track: Sound) -> Sound:
    """Returns values of each sample, on lines between those of `_TIME`."""
    part = np.arange(_STEP) / _STEP
    return (track[:-1, None] + np.diff(track)[:, None] * part).ravel()


def _pulses(random: Random, size: float) -> Sound:
    """Returns the pulses of a voice whose pitch falls or rises; a small head has a high one."""
    pitch = 115 / size**2.5 * 2 ** random.uniform(-0.5, 0.5)
    time = np.linspace(0, 1, RATE)
    melody = pitch * 2 ** (random.uniform(-0.5, 0.25) * time + 0.1 * random.normal() * time**2)
    melody = melody * (1 + 0.01 * np.cumsum(random.normal(size=RATE)) / RATE**0.5)
    turns = np.cumsum(melody) / RATE
    whole = np.floor(turns)
    at = np.flatnonzero(np.diff(whole) > 0)
    past = (turns[at + 1] - whole[at + 1]) / (turns[at + 1] - turns[at])
    pulses = np.zeros(RATE)
    strength = random.normal(1, 0.05, len(at)) * (RATE / melody[at]) ** 0.5
    pulses[at] += strength * past
    pulses[at + 1] += strength * (1 - past)
    return pulses


def _resonances(random: Random, formants: Sequence[Sound]) -> Sound:
    """Returns how strong each frequency leaves the throat, over time: `[times, frequencies]`."""
    gain = 1 / (1 + (_FREQUENCY / 500) ** random.uniform(0.8, 1.7))
    wide = random.uniform(0.7, 2)
    squares = _FREQUENCY**2
    loss = np.ones((len(_AT), 1))
    for formant, bandwidth in zip(formants, _BANDWIDTHS, strict=True):
        ratio = squares / (formant**2)[:, None]
        loss = loss * ((1 - ratio) ** 2 + ratio * (bandwidth * wide / formant[:, None]) ** 2)
    return np.asarray(gain / np.sqrt(loss))


def _shaped(*sources: tuple[Sound, Sound]) -> Sound:
    """Returns the sum of sounds, each with gains `[times, frequencies]` of its spectrum."""
    spectrum: npt.NDArray[np.complex128] | float = 0.0
    for sound, gain in sources:
        padded = np.pad(sound, (_HOP, _FRAME))
        frames = np.lib.stride_tricks.sliding_window_view(padded, _FRAME)[::_HOP]
        spectrum = spectrum + np.fft.rfft(frames * _WINDOW) * gain
    halves = (np.fft.irfft(spectrum, _FRAME) * _WINDOW).reshape(-1, 2, _HOP)
    # A frame ends where the next but one begins, and the first lies half before the sound.
    return (halves[1:, 0] + halves[:-1, 1]).ravel()[:RATE]
