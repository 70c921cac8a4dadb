#!/usr/bin/env python3
"""Verifies an export of the receipt chain without any of this project's code.

    python3 test/auditor.py EXPORT --pin KEYID:HEX [--vkey VKEY] [--keys FILE]
                                   [--head SERIAL:HASH] [--through SERIAL:HASH]... [--command-only]
                                   [--timestamps FILE --timestamp-ca FILE]

Of every receipt it checks form, serial, link, time order, hash and signature, and that its key is the pinned first one or was
introduced by the receipt before; of the whole, the pinned head, the Merkle root (RFC 6962) and the checkpoint's signature.

Python's standard library parses and hashes; OpenSSL checks the Ed25519 signatures: all of them through libcrypto, and those
that matter most (the last receipt of each key, and the checkpoint) once more with the openssl command. Where libcrypto is not
found, or with --command-only, the command checks every one, at some five milliseconds each and as many at a time as there are
processors. The last line says how many were checked by what. Exit 0 when everything holds, 1 with the first thing that does not,
2 for a wrong call, as with a file that cannot be read.

With --timestamps, the openssl command (ts -verify) checks each reply of a time-stamp authority against the roots in --timestamp-ca, as
of the time that the reply names; the checkpoint that it is about must be one of this tree.

An attestation is signed over its RFC 8785 JSON without receipt_hash and sig_ed25519_hex. Its members have ASCII names and hold
integers, strings and null, for which sorted keys and no blanks are all that RFC 8785 asks.
"""
import argparse
import base64
import binascii
import concurrent.futures
import ctypes
import ctypes.util
import datetime
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

FIELDS = ["v", "serial", "subject_sha256", "label", "requested_by", "key_id", "ts_ms", "ts_utc", "prev_hash", "pubkey_hex",
          "receipt_hash", "sig_ed25519_hex"]
SPKI_ED25519 = bytes.fromhex("302a300506032b6570032100")
TIMESTAMP = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z"


def check(holds, what):
    if not holds:
        sys.exit(f"BAD {what}")


def sha256(data):
    return hashlib.sha256(data).digest()


# JSON ------------------------------------------------------------------------------------------------------------------------

def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def unique(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is given twice")
    return members


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def read_json(text, at):
    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        return sys.exit(f"BAD {at}: format: {error}")


def read_line(raw, members, at):
    """A line as an export writes it: one object, these members in this order, no blanks, a newline."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return sys.exit(f"BAD {at}: format: not UTF-8")
    check(text.endswith("\n"), f"{at}: format: cut short")
    value = read_json(text, at)
    check(isinstance(value, dict) and set(value) == set(members), f"{at}: shape: not the members of such a line")
    try:
        written = json.dumps({name: value[name] for name in members}, separators=(",", ":"), ensure_ascii=False) + "\n"
        check(written.encode() == raw, f"{at}: format: not written as an export writes it")
    except UnicodeEncodeError:
        check(False, f"{at}: format: not well-formed Unicode")
    return value


def is_integer(value, least=0):
    return type(value) is int and least <= value < 2 ** 53


def is_text(value, pattern):
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


# Signatures ------------------------------------------------------------------------------------------------------------------

def temporary(folder, content):
    handle, path = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    return path


def command_verifies(message, signature, public_key):
    with tempfile.TemporaryDirectory() as folder:
        data, sig, key = (temporary(folder, content) for content in (message, signature, SPKI_ED25519 + public_key))
        run = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", key, "-rawin", "-in", data,
                              "-sigfile", sig], capture_output=True, check=False)
        return run.returncode == 0


def open_library():
    try:
        # By name first: to search takes longer than all the rest of a short export.
        return ctypes.CDLL("libcrypto.so.3")
    except OSError:
        found = ctypes.util.find_library("crypto")
        return ctypes.CDLL(found) if found else None


def library_verifier():
    """A function like command_verifies on libcrypto, or None where there is none that can."""
    crypto = open_library()
    if not hasattr(crypto, "EVP_DigestVerify"):
        return None
    pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    declared = {
        "EVP_PKEY_new_raw_public_key": (pointer, [ctypes.c_int, pointer, text, size]),
        "EVP_MD_CTX_new": (pointer, []),
        "EVP_MD_CTX_free": (None, [pointer]),
        "EVP_DigestVerifyInit": (ctypes.c_int, [pointer] * 5),
        "EVP_DigestVerify": (ctypes.c_int, [pointer, text, size, text, size]),
    }
    for function, (result, arguments) in declared.items():
        getattr(crypto, function).restype = result
        getattr(crypto, function).argtypes = arguments
    ed25519 = 1087
    keys = {}

    def verifies(message, signature, public_key):
        if public_key not in keys:
            keys[public_key] = crypto.EVP_PKEY_new_raw_public_key(ed25519, None, public_key, 32)
        context = crypto.EVP_MD_CTX_new()
        try:
            return (crypto.EVP_DigestVerifyInit(context, None, None, None, keys[public_key]) == 1
                    and crypto.EVP_DigestVerify(context, signature, len(signature), message, len(message)) == 1)
        finally:
            crypto.EVP_MD_CTX_free(context)

    return verifies


def check_by_command(signed, what):
    """signed: (serial, what command_verifies takes); as many at once as there are processors."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for (serial, _), good in zip(signed, pool.map(lambda one: command_verifies(*one[1]), signed)):
            check(good, f"serial {serial}: {what}")


# The tree --------------------------------------------------------------------------------------------------------------------

class Tree:
    """RFC 6962, grown leaf by leaf: the roots of the complete subtrees, largest first."""

    def __init__(self):
        self.size = 0
        self.edge = []

    def append(self, leaf):
        node = sha256(b"\0" + leaf)
        size = self.size
        while size % 2:
            node = sha256(b"\1" + self.edge.pop() + node)
            size //= 2
        self.edge.append(node)
        self.size += 1

    def root(self):
        root = None
        for node in reversed(self.edge):
            root = node if root is None else sha256(b"\1" + node + root)
        return root or sha256(b"")


# The chain -------------------------------------------------------------------------------------------------------------------

def introduced_subject(key_id, use, pubkey_hex, first_serial):
    """What a receipt must attest that introduces this key."""
    return sha256(canonical({"type": "service.signing-key", "version": 1, "key_id": key_id, "use": use, "alg": "Ed25519",
                             "pubkey_hex": pubkey_hex, "first_serial": first_serial})).hex()


def introduces(receipt, use):
    """Only the service makes receipts of this name: no account can have it."""
    return receipt["requested_by"] == "key-rotation" and receipt["label"] == f"{use}-key"


def check_form(receipt, at):
    check(type(receipt["v"]) is int and receipt["v"] == 1, f"{at}: shape: v")
    check(all(is_integer(receipt[name], least) for name, least in (("serial", 1), ("key_id", 0), ("ts_ms", 0))),
          f"{at}: shape: serial, key_id or ts_ms")
    for name in ("subject_sha256", "prev_hash", "pubkey_hex", "receipt_hash"):
        check(is_text(receipt[name], "[0-9a-f]{64}"), f"{at}: shape: {name}")
    check(is_text(receipt["sig_ed25519_hex"], "[0-9a-f]{128}"), f"{at}: shape: sig_ed25519_hex")
    check(is_text(receipt["ts_utc"], TIMESTAMP), f"{at}: shape: ts_utc")
    check(is_text(receipt["requested_by"], "(?s).+"), f"{at}: shape: requested_by")
    check(receipt["label"] is None or isinstance(receipt["label"], str), f"{at}: shape: label")


def milliseconds(ts_utc):
    """In whole numbers; None for a day or an hour that there is not."""
    head, _, fraction = ts_utc[:-1].partition(".")
    try:
        whole = datetime.datetime.fromisoformat(f"{head}+00:00")
    except ValueError:
        return None
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (whole - epoch) // datetime.timedelta(milliseconds=1) + int(fraction.ljust(3, "0")[:3] or 0)


def check_receipt(receipt, last, trusted, at):
    """trusted: the one (key_id, public key) in force. Answers the one in force for this receipt, and what it has signed."""
    check_form(receipt, at)
    check(receipt["serial"] == (last["serial"] if last else 0) + 1, f"{at}: serials")
    check(receipt["prev_hash"] == (last["receipt_hash"] if last else "0" * 64), f"{at}: links")
    check(not last or receipt["ts_ms"] >= last["ts_ms"], f"{at}: times")
    key = (receipt["key_id"], receipt["pubkey_hex"])
    if last and introduces(last, "receipt"):
        subject = introduced_subject(key[0], "receipt", key[1], receipt["serial"])
        check(key != trusted and last["subject_sha256"] == subject, f"{at}: key_changes")
        trusted = key
    check(key == trusted, f"{at}: trusted_keys")
    signed = canonical({name: value for name, value in receipt.items() if name not in ("receipt_hash", "sig_ed25519_hex")})
    check(sha256(signed).hex() == receipt["receipt_hash"], f"{at}: receipt_hashes")
    stated = milliseconds(receipt["ts_utc"])
    check(stated is not None and abs(stated - receipt["ts_ms"]) < 1000, f"{at}: attested_times")
    return trusted, (signed, bytes.fromhex(receipt["sig_ed25519_hex"]), bytes.fromhex(receipt["pubkey_hex"]))


def check_header(header):
    head, note = header["head"], header["checkpoint"]
    check(is_integer(header["countersign_export"]) and header["countersign_export"] == 1, "header: shape: another version")
    check(isinstance(head, dict) and list(head) == ["serial", "receipt_hash"] and is_integer(head["serial"], 1)
          and is_text(head["receipt_hash"], "[0-9a-f]{64}"), "header: shape: head")
    check(note is None or isinstance(note, str), "header: shape: checkpoint")
    return (head["serial"], head["receipt_hash"]), note


# The checkpoint --------------------------------------------------------------------------------------------------------------

def decode(text, what):
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    check(data and base64.b64encode(data).decode() == text, f"checkpoint: {what} is not base64")
    return data


def note_key_id(name, public_key):
    return sha256(name.encode() + b"\n\1" + public_key)[:4]


def read_vkey(vkey):
    name, _, rest = vkey.partition("+")
    key_hash, _, encoded = rest.partition("+")
    key = decode(encoded, "the verifier key")
    check(len(key) == 33 and key[0] == 1 and note_key_id(name, key[1:]).hex() == key_hash, "checkpoint: the verifier key")
    return name, key[1:]


def check_checkpoint(note, tree, vkey, successors):
    """successors: public keys that the chain itself introduces. Answers how many signatures were checked."""
    text, gap, lines = note.rpartition("\n\n")
    parts = text.split("\n")
    check(gap and len(parts) == 3 and lines.endswith("\n"), "checkpoint: not of the right form")
    origin, size, root = parts
    check(size == str(tree.size) and decode(root, "the root") == tree.root(), "checkpoint: not of this tree")
    if not vkey:
        return 0
    name, pinned = read_vkey(vkey)
    check(origin == name, "checkpoint: of another log")
    keys = {note_key_id(name, key): key for key in (pinned, *successors)}
    good = 0
    for line in lines[:-1].split("\n"):
        words = line.split(" ")
        check(len(words) == 3 and words[0] == "\u2014", "checkpoint: a signature line of another form")
        blob = decode(words[2], "a signature")
        if words[1] == name and blob[:4] in keys:
            check(command_verifies(f"{text}\n".encode(), blob[4:], keys[blob[:4]]), "checkpoint: signatures")
            good += 1
    check(good, "checkpoint: not signed by the pinned key")
    return good


# Keys as /v1/keys lists them ---------------------------------------------------------------------------------------------------

def check_listing(path, ranges, introductions, head_serial):
    """Holds the list against the chain. Answers the checkpoint keys that receipts of the chain introduce."""
    with open(path, encoding="utf-8") as file:
        listed = read_json(file.read(), "keys")["keys"]
    seen = {(key["key_id"], key["pubkey_hex"]): key for key in listed if key["use"] == "receipt"}
    for (key, first, last) in ranges:
        check(key in seen, f"keys: key {key[0]}, which signed serial {first}, is not listed")
        one = seen.pop(key)
        check(one["first_serial"] == first, f"keys: key {key[0]} is listed from serial {one['first_serial']}, not {first}")
        check(one["introduced_by"] == (first - 1 or None), f"keys: key {key[0]} was introduced elsewhere")
        ended = one["last_serial"]
        check(ended == last or (last == head_serial and (ended is None or ended > last)),
              f"keys: key {key[0]} is listed up to serial {ended}, not {last}")
    for key, one in seen.items():
        check((one["first_serial"] or 0) > head_serial, f"keys: key {key[0]} is listed and signed nothing")
    subjects = [receipt["subject_sha256"] for receipt in introductions]
    return [bytes.fromhex(key["pubkey_hex"]) for key in listed if key["use"] == "checkpoint"
            and introduced_subject(key["key_id"], "checkpoint", key["pubkey_hex"], None) in subjects]


# Timestamps ------------------------------------------------------------------------------------------------------------------

def read_timestamps(path):
    """Lines of JSON, as an export has them beside it: (size of the tree, its root, checkpoint, reply) each."""
    check(shutil.which("openssl"), "timestamps: the openssl command checks them, and it is not on this machine")
    replies = []
    with open(path, "rb") as lines:
        for number, raw in enumerate(lines, 1):
            line = read_line(raw, ["note", "reply_base64"], f"timestamps: line {number}")
            parts = line["note"].rpartition("\n\n")[0].split("\n")
            check(len(parts) == 3 and is_text(parts[1], r"[1-9]\d{0,15}"), f"timestamps: line {number} is about no checkpoint")
            replies.append((int(parts[1]), decode(parts[2], "the root"), line["note"].encode(),
                            decode(line["reply_base64"], "a reply")))
    return replies


def openssl_ts(*arguments):
    return subprocess.run(["openssl", "ts", *arguments], capture_output=True, check=False)


def check_timestamp(size, note, reply, roots):
    """Answers the time that the authority has signed."""
    at = f"timestamps: the reply about {size} receipts"
    with tempfile.TemporaryDirectory() as folder:
        data, stamp = temporary(folder, note), temporary(folder, reply)
        shown = openssl_ts("-reply", "-in", stamp, "-text").stdout.decode(errors="replace")
        found = re.search(r"^Time stamp: (\w{3}) +(\d+) (\d\d:\d\d:\d\d)(?:\.\d+)? (\d{4}) GMT$", shown, re.MULTILINE)
        check(found, f"{at} names no time")
        time = datetime.datetime.strptime(" ".join(found.groups()), "%b %d %H:%M:%S %Y").replace(tzinfo=datetime.timezone.utc)
        run = openssl_ts("-verify", "-in", stamp, "-data", data, "-CAfile", roots, "-attime", str(int(time.timestamp())))
        reason = run.stderr.decode(errors="replace").strip().replace("\n", "; ")
        check(run.returncode == 0, f"{at}: openssl ts -verify: {reason}")
        return time


def check_timestamps(replies, found, roots):
    """found: roots of the tree by size. Answers in words what the newest one proves."""
    times = {}
    for size, root, note, reply in replies:
        check(size in found, f"timestamps: the reply about {size} receipts: these are fewer")
        check(found[size] == root, f"timestamps: the reply about {size} receipts is about another chain")
        time = check_timestamp(size, note, reply, roots)
        times[size] = min(time, times.get(size, time))
    newest = max(times)
    return f"; {len(replies)} timestamps by openssl ts, the chain up to {newest} existed at {times[newest]:%Y-%m-%dT%H:%M:%SZ}"


def point(text):
    serial, _, receipt_hash = text.partition(":")
    if not re.fullmatch(r"[1-9]\d{0,15}", serial) or not re.fullmatch("[0-9a-f]{64}", receipt_hash):
        raise argparse.ArgumentTypeError(f"{text} is not SERIAL:HASH")
    return int(serial), receipt_hash


def pin(text):
    key_id, _, public_key = text.partition(":")
    if not re.fullmatch(r"\d{1,15}", key_id) or not re.fullmatch("[0-9a-fA-F]{64}", public_key):
        raise argparse.ArgumentTypeError(f"{text} is not KEYID:HEX")
    return int(key_id), public_key.lower()


def main():
    parser = argparse.ArgumentParser(description="Verify an export of the receipt chain.")
    parser.add_argument("export")
    parser.add_argument("--pin", required=True, type=pin, help="KEYID:HEX of the first key")
    parser.add_argument("--vkey", help="verifier key of the checkpoint")
    parser.add_argument("--keys", help="the answer of /v1/keys, to be held against the chain")
    parser.add_argument("--head", type=point, help="SERIAL:HASH that the chain must end with")
    parser.add_argument("--through", type=point, action="append", default=[], help="SERIAL:HASH that was pinned before")
    parser.add_argument("--command-only", action="store_true", help="check every signature with the openssl command")
    parser.add_argument("--timestamps", help="replies of time-stamp authorities, as export stores them")
    parser.add_argument("--timestamp-ca", help="trusted roots of those authorities (PEM)")
    options = parser.parse_args()
    if (options.timestamps is None) != (options.timestamp_ca is None):
        parser.error("--timestamps and --timestamp-ca belong together")
    replies = read_timestamps(options.timestamps) if options.timestamps else []
    found = dict.fromkeys(size for size, *_ in replies)
    trusted = options.pin
    verifies = None if options.command_only else library_verifier()
    tree, last, introductions, waiting = Tree(), None, [], []
    ranges = []  # [key, first serial, last serial, what was signed last]
    with open(options.export, "rb") as lines:
        head, note = check_header(read_line(next(lines, b""), ["countersign_export", "head", "checkpoint"], "header"))
        for raw in lines:
            at = f"serial {tree.size + 1}"
            receipt = read_line(raw, FIELDS, at)
            trusted, signed = check_receipt(receipt, last, trusted, at)
            if verifies:
                check(verifies(*signed), f"{at}: signatures")
            else:
                waiting.append((receipt["serial"], signed))
            if not ranges or ranges[-1][0] != trusted:
                ranges.append([trusted, receipt["serial"], 0, b""])
            ranges[-1][2:] = [receipt["serial"], signed]
            if introduces(receipt, "checkpoint"):
                introductions.append(receipt)
            for serial, receipt_hash in options.through:
                check(serial != receipt["serial"] or receipt_hash == receipt["receipt_hash"], f"{at}: through")
            last = receipt
            tree.append(bytes.fromhex(receipt["receipt_hash"]))
            if tree.size in found:
                found[tree.size] = tree.root()
    check(last is not None, "shape: no receipts")
    end = (last["serial"], last["receipt_hash"])
    check(end == head, f"head: ends at serial {end[0]}")
    check(options.head in (None, head), "head: not the one that was given")
    check(all(serial <= end[0] for serial, _ in options.through), "through: ends before a receipt that was pinned")
    check_by_command(waiting, "signatures")
    ends = [(last_serial, signed) for _, _, last_serial, signed in ranges] if verifies else []
    check_by_command(ends, "signatures, by the openssl command")
    spans = [(key, first, last_serial) for key, first, last_serial, _ in ranges]
    successors = check_listing(options.keys, spans, introductions, end[0]) if options.keys else []
    check(note or not options.vkey, "checkpoint: there is none to check with the verifier key")
    noted = check_checkpoint(note, tree, options.vkey, successors) if note else 0
    stamped = check_timestamps(replies, {size: root for size, root in found.items() if root}, options.timestamp_ca) if replies else ""
    by_library = f"{tree.size} signatures by libcrypto, " if verifies else ""
    print(f"good: {tree.size} receipts, {len(ranges)} keys; {by_library}{len(waiting) + len(ends) + noted} by the openssl command; "
          f"root {tree.root().hex()}{stamped}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        # A file that cannot be read is not a forged one. Of an error about what a file holds, Python names no file.
        if getattr(error, "filename", None) is not None:
            print(f"cannot read {error.filename}: {error.strerror}", file=sys.stderr)
            sys.exit(2)
        sys.exit(f"BAD {type(error).__name__}: {error}")
