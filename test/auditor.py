#!/usr/bin/env python3
"""Verifies an export of the receipt chain without any of this project's code.

    python3 test/auditor.py EXPORT --pin KEYID:HEX [--vkey VKEY]

Python's standard library parses and hashes; OpenSSL checks the Ed25519 signatures: all of them through libcrypto, and those
that matter most (the last receipt of each key, and the checkpoint) once more with the openssl command. Where libcrypto is not
found, the command does it all, at some five milliseconds each. Exit 0 when everything holds, 1 with the first thing that does
not.

An attestation is signed over its RFC 8785 JSON without receipt_hash and sig_ed25519_hex. Its members have ASCII names and hold
integers, strings and null, for which sorted keys and no blanks are all that RFC 8785 asks.
"""
import argparse
import base64
import ctypes
import ctypes.util
import datetime
import hashlib
import json
import re
import subprocess
import sys
import tempfile

FIELDS = {"v", "serial", "subject_sha256", "label", "requested_by", "key_id", "ts_ms", "ts_utc", "prev_hash", "pubkey_hex",
          "receipt_hash", "sig_ed25519_hex"}
SPKI_ED25519 = bytes.fromhex("302a300506032b6570032100")


def check(holds, what):
    if not holds:
        sys.exit(f"BAD {what}")


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha256(data):
    return hashlib.sha256(data).digest()


def command_verifies(message, signature, public_key):
    with tempfile.NamedTemporaryFile() as data, tempfile.NamedTemporaryFile() as sig, tempfile.NamedTemporaryFile() as key:
        for file, content in ((data, message), (sig, signature), (key, SPKI_ED25519 + public_key)):
            file.write(content)
            file.flush()
        run = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", key.name, "-rawin",
                              "-in", data.name, "-sigfile", sig.name], capture_output=True, check=False)
        return run.returncode == 0


def library_verifier():
    """A function like command_verifies on libcrypto, or None where there is none that can."""
    name = ctypes.util.find_library("crypto")
    if not name:
        return None
    crypto = ctypes.CDLL(name)
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
        key = keys.setdefault(public_key, crypto.EVP_PKEY_new_raw_public_key(ed25519, None, public_key, 32))
        context = crypto.EVP_MD_CTX_new()
        try:
            return (crypto.EVP_DigestVerifyInit(context, None, None, None, key) == 1
                    and crypto.EVP_DigestVerify(context, signature, len(signature), message, len(message)) == 1)
        finally:
            crypto.EVP_MD_CTX_free(context)

    return verifies


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


def introduced_subject(receipt):
    """What the receipt before must attest if it handed over to this one's key."""
    return sha256(canonical({"type": "service.signing-key", "version": 1, "key_id": receipt["key_id"], "use": "receipt",
                             "alg": "Ed25519", "pubkey_hex": receipt["pubkey_hex"],
                             "first_serial": receipt["serial"]})).hex()


def check_form(receipt, at):
    check(isinstance(receipt, dict) and set(receipt) == FIELDS, f"{at}: not the fields of an attestation")
    check(type(receipt["v"]) is int and receipt["v"] == 1, f"{at}: v")
    for name in ("serial", "key_id", "ts_ms"):
        check(type(receipt[name]) is int and receipt[name] >= 0, f"{at}: {name}")
    for name in ("subject_sha256", "prev_hash", "pubkey_hex", "receipt_hash"):
        check(re.fullmatch("[0-9a-f]{64}", str(receipt[name])), f"{at}: {name}")
    check(re.fullmatch("[0-9a-f]{128}", str(receipt["sig_ed25519_hex"])), f"{at}: sig_ed25519_hex")


def check_receipt(receipt, last, trusted, verifies, at):
    """trusted: the one (key_id, public key) in force. Answers the one in force for this receipt."""
    check_form(receipt, at)
    check(receipt["serial"] == (last["serial"] if last else 0) + 1, f"{at}: serials")
    check(receipt["prev_hash"] == (last["receipt_hash"] if last else "0" * 64), f"{at}: links")
    check(not last or receipt["ts_ms"] >= last["ts_ms"], f"{at}: times")
    key = (receipt["key_id"], receipt["pubkey_hex"])
    if last and last["requested_by"] == "key-rotation" and last["label"] == "receipt-key":
        check(key != trusted and last["subject_sha256"] == introduced_subject(receipt), f"{at}: key_changes")
        trusted = key
    check(key == trusted, f"{at}: trusted_keys")
    signed = canonical({name: value for name, value in receipt.items() if name not in ("receipt_hash", "sig_ed25519_hex")})
    check(sha256(signed).hex() == receipt["receipt_hash"], f"{at}: receipt_hashes")
    stated = datetime.datetime.fromisoformat(receipt["ts_utc"].replace("Z", "+00:00")).timestamp() * 1000
    check(abs(stated - receipt["ts_ms"]) < 1000, f"{at}: attested_times")
    signature, public_key = bytes.fromhex(receipt["sig_ed25519_hex"]), bytes.fromhex(receipt["pubkey_hex"])
    check(verifies(signed, signature, public_key), f"{at}: signatures")
    return trusted, (signed, signature, public_key)


def check_checkpoint(note, tree, vkey):
    text, _, lines = note.rpartition("\n\n")
    text += "\n"
    origin, size, root, rest = text.split("\n", 3)
    check(rest == "" and int(size) == tree.size and base64.b64decode(root) == tree.root(), "checkpoint: not of this tree")
    if not vkey:
        return 0
    name, key_hash, encoded = vkey.split("+", 2)
    key = base64.b64decode(encoded)
    check(key[0] == 1 and sha256(name.encode() + b"\n" + key)[:4].hex() == key_hash, "checkpoint: the verifier key")
    check(origin == name, "checkpoint: of another log")
    for line in lines.splitlines():
        dash, signer, blob = line.split(" ")
        signature = base64.b64decode(blob)
        if (dash, signer, signature[:4].hex()) == ("\u2014", name, key_hash):
            check(command_verifies(text.encode(), signature[4:], key[1:]), "checkpoint: signatures")
            return 1
    sys.exit("BAD checkpoint: not signed by the pinned key")


def main():
    parser = argparse.ArgumentParser(description="Verify an export of the receipt chain.")
    parser.add_argument("export")
    parser.add_argument("--pin", required=True, help="KEYID:HEX of the first key")
    parser.add_argument("--vkey", help="verifier key of the checkpoint")
    options = parser.parse_args()
    key_id, public_key = options.pin.split(":")
    trusted = (int(key_id), public_key)
    verifies = library_verifier() or command_verifies
    tree, last, ends, keys = Tree(), None, [], {trusted}
    with open(options.export, encoding="utf-8", newline="\n") as lines:
        header = json.loads(next(lines))
        check(header["countersign_export"] == 1, "format")
        before = None
        for line in lines:
            receipt = json.loads(line)
            in_force, signed = check_receipt(receipt, last, trusted, verifies, f"serial {tree.size + 1}")
            if in_force != trusted:
                ends.append(before)
                keys.add(in_force)
            trusted, before, last = in_force, signed, receipt
            tree.append(bytes.fromhex(receipt["receipt_hash"]))
    check(last is not None, "format: no receipts")
    ends.append(before)
    head = header["head"]
    check((last["serial"], last["receipt_hash"]) == (head["serial"], head["receipt_hash"]), "head")
    for end in ends:
        check(command_verifies(*end), "signatures, by the openssl command")
    noted = check_checkpoint(header["checkpoint"], tree, options.vkey) if header["checkpoint"] else 0
    how = "libcrypto" if verifies is not command_verifies else "the openssl command"
    print(f"good: {tree.size} receipts, {len(keys)} keys; {tree.size} signatures by {how}, "
          f"{len(ends) + noted} by the openssl command; root {tree.root().hex()}")


if __name__ == "__main__":
    main()
