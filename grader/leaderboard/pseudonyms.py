"""Names to publish: made with a secret key, readable, unique in a course, and never changed."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.leaderboard.store import Store

__all__ = ["assign", "pseudonym"]

_ADJECTIVES = (
    "agile amber ample azure balmy bold brave brisk bronze calm candid clear clever copper coral cosmic crimson crisp "
    "daring dusky eager early emerald fair fleet fond fresh gentle gilded golden grand hazel humble indigo ivory jade "
    "jolly keen kind lively lucid lunar mellow merry mild mint modest noble olive opal patient placid plucky polar "
    "proud quiet rapid rosy ruby rustic sage scarlet silent silver snowy solar spry steady stellar sunny swift teal "
    "tidy umber velvet violet vivid warm wise witty young zesty"
)
_ANIMALS = (
    "alpaca antelope badger bear beaver bison bobcat buzzard camel caribou cheetah condor coyote crane cricket curlew "
    "dingo dolphin dove eagle egret elk ermine falcon ferret finch fox gazelle gecko gibbon goose grouse gull hare "
    "hawk hedgehog heron hornet ibex ibis iguana jackdaw jaguar kestrel kiwi koala lark lemur leopard "
    "linnet llama lynx magpie marmot marten meerkat mole moose newt ocelot orca oriole osprey otter owl panda "
    "panther parrot pelican penguin petrel plover puffin puma quail rabbit raccoon raven robin salmon seal serval "
    "sparrow stork swallow swan swift tapir tern thrush tiger toucan turtle viper vole walrus weasel whale wolf wombat "
    "wren yak zebra"
)


def pseudonym(key: bytes, student: str, taken: Collection[str] = ()) -> str:
    """A name such as "amber-heron-07", none of `taken`; without `key` nobody can tie it to `student` (HMAC-SHA-256)."""
    adjectives, animals = _ADJECTIVES.split(), _ANIMALS.split()
    attempt = 0
    while True:
        message = b"%d\0%s" % (attempt, student.encode("utf-8", "surrogatepass"))
        number = int.from_bytes(hmac.new(key, message, hashlib.sha256).digest())
        number, tail = divmod(number, 100)
        number, animal = divmod(number, len(animals))
        name = f"{adjectives[number % len(adjectives)]}-{animals[animal]}-{tail:02}"
        if name not in taken:
            return name
        attempt += 1


def assign(store: Store, students: Iterable[str]) -> dict[str, str]:
    """Student to pseudonym, for these students. New ones are kept in the store: a newcomer never moves them."""
    wanted, key, kept = sorted(set(students)), store.secret(), store.pseudonyms()
    while missing := [student for student in wanted if student not in kept]:
        new: dict[str, str] = {}
        for student in missing:
            new[student] = pseudonym(key, student, {*kept.values(), *new.values()})
        store.add_pseudonyms(new)  # what another process took meanwhile is not kept, and made again
        kept = store.pseudonyms()
    return {student: kept[student] for student in wanted}
