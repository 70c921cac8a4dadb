#!/usr/bin/env python3
"""Checks an evidence package and its result without any of this project's code.

    python3 test/package_auditor.py PACKAGE RESULT --pin KEYID:HEX [--vkey VKEY] [--timestamp-ca FILE]

Of the package: its lists, the receipts of manifest and result (form, key, hash, signature, proof in the tree, signature of the
tree's head), the manifest against its receipt, each request, head and body against the manifest, connections and certificates (name of
the host, time, who signed whom), the decoded body. Of the result: its envelope and digest, the part that was observed, and that each
quote is in its text. With --timestamp-ca, the openssl command (ts -verify) checks each reply of a time-stamp authority against these
roots; it must be about the head that the proofs lead to. How the text comes from the body it does not check: that takes a parser of HTML.

Python's standard library reads and hashes; the openssl command checks signatures and certificates. Bodies under brotli are not decoded,
which the last line says. Exit 0 when everything holds, 1 with the first thing that does not.
"""
import argparse
import base64
import datetime
import gzip
import hashlib
import io
import re
import subprocess
import sys
import tempfile
import types
import urllib.parse
import zipfile
import zlib

from auditor import (canonical, check, check_checkpoint, check_form, check_timestamp, command_verifies, milliseconds, pin, read_json, sha256,
                     temporary)

MOST_BYTES = 64 * 1024 * 1024
ATTESTATION_LESS = ("receipt_hash", "sig_ed25519_hex")
ARCHIVE = "archive/data.warc.gz"


def hex256(data):
    return hashlib.sha256(data).hexdigest()


def read_object(data, at):
    try:
        value = read_json(data.decode("utf-8"), at)
    except UnicodeDecodeError:
        sys.exit(f"BAD {at}: not UTF-8")
    check(isinstance(value, dict), f"{at}: not an object")
    return value


# The package -----------------------------------------------------------------------------------------------------------------

def read_package(path):
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        check(len({one.filename for one in entries}) == len(entries) <= 200, "package: names of files")
        check(all(one.compress_type == zipfile.ZIP_STORED for one in entries), "package: a file is compressed")
        check(sum(one.file_size for one in entries) <= MOST_BYTES, "package: too large")
        return {one.filename: archive.read(one) for one in entries}


def check_lists(files):
    listed = read_object(files["datapackage.json"], "datapackage.json")
    digest = read_object(files["datapackage-digest.json"], "datapackage-digest.json")
    check(digest["hash"] == f"sha256:{hex256(files['datapackage.json'])}", "datapackage.json: SHA-256")
    names = {"datapackage.json", "datapackage-digest.json"}
    for one in listed["resources"]:
        name = one["path"]
        names.add(name)
        check(name in files and len(files[name]) == one["bytes"] and one["hash"] == f"sha256:{hex256(files[name])}", f"{name}: SHA-256")
    check(names == set(files), "datapackage.json: lists other files than there are")


# Receipts --------------------------------------------------------------------------------------------------------------------

def check_attestation(receipt, key, at):
    check_form(receipt, at)
    check((receipt["key_id"], receipt["pubkey_hex"]) == key, f"{at}: trusted_key")
    signed = canonical({name: value for name, value in receipt.items() if name not in ATTESTATION_LESS})
    check(hex256(signed) == receipt["receipt_hash"], f"{at}: receipt_hash")
    check(command_verifies(signed, bytes.fromhex(receipt["sig_ed25519_hex"]), bytes.fromhex(receipt["pubkey_hex"])), f"{at}: signature")
    stated = milliseconds(receipt["ts_utc"])
    check(stated is not None and abs(stated - receipt["ts_ms"]) < 1000, f"{at}: attested_time")


def root_of(leaf, index, size, hashes):
    """RFC 9162, 2.1.3.2."""
    check(0 <= index < size, "inclusion: no such leaf")
    node, last = sha256(b"\0" + leaf), size - 1
    for one in hashes:
        check(last > 0, "inclusion: too many hashes")
        if index % 2 == 1 or index == last:
            node = sha256(b"\1" + one + node)
            while index % 2 == 0 and index != 0:
                index, last = index // 2, last // 2
        else:
            node = sha256(b"\1" + node + one)
        index, last = index // 2, last // 2
    check(last == 0, "inclusion: too few hashes")
    return node


def check_receipt(receipt, key, vkey, at):
    attestation, proof = receipt["attestation"], receipt["inclusion"]
    check_attestation(attestation, key, at)
    check(proof["leaf_index"] == attestation["serial"] - 1, f"{at}: inclusion: for another serial")
    root = root_of(bytes.fromhex(attestation["receipt_hash"]), proof["leaf_index"], proof["tree_size"],
                   [bytes.fromhex(one) for one in proof["hashes"]])
    check_checkpoint(receipt["checkpoint"], types.SimpleNamespace(size=proof["tree_size"], root=lambda: root), vkey, [])


# The archive -----------------------------------------------------------------------------------------------------------------

def read_members(data):
    members, total = [], 0
    while data:
        inflate = zlib.decompressobj(31)
        content = inflate.decompress(data, MOST_BYTES - total)
        total += len(content)
        check(inflate.eof and total < MOST_BYTES and len(members) < 64, f"{ARCHIVE}: not whole, or too much")
        members.append(content)
        data = inflate.unused_data
    return members


def read_record(content, number):
    at = f"{ARCHIVE}: record {number}"
    head, gap, rest = content.partition(b"\r\n\r\n")
    lines = head.decode("utf-8", "replace").split("\r\n")
    check(gap and lines[0] == "WARC/1.1", f"{at}: not of WARC/1.1")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    block = rest[:-4]
    check(rest[-4:] == b"\r\n\r\n" and fields.get("content-length") == str(len(block)), f"{at}: Content-Length")
    if "warc-block-digest" in fields:
        check(fields["warc-block-digest"] == f"sha256:{hex256(block)}", f"{at}: WARC-Block-Digest")
    return fields, block


def split_response(block, at):
    start = 0
    while True:
        end = block.find(b"\r\n\r\n", start) + 4
        check(end > 3, f"{at}: no end of the head")
        status = re.match(rb"HTTP/1\.[01] (\d{3})", block[start:end])
        check(status, f"{at}: no status line")
        if int(status[1]) >= 200:
            return int(status[1]), block[start:end], block[:end], block[end:]
        start = end


def decoded_body(head, body):
    """Answers None where the standard library cannot decode it."""
    fields = {name.strip().lower(): value.strip() for name, _, value in
              (line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:])}
    if fields.get("transfer-encoding", "").lower() == "chunked":
        source, parts = io.BytesIO(body), []
        while size := int(source.readline().split(b";")[0], 16):
            parts.append(source.read(size))
            check(source.read(2) == b"\r\n", "body: a chunk is not as long as its size")
        body = b"".join(parts)
    elif "content-length" in fields:
        body = body[:int(fields["content-length"])]
    coding = fields.get("content-encoding", "").lower()
    if coding == "br":
        return len(body), None
    return len(body), gzip.decompress(body) if coding in ("gzip", "x-gzip") else body


def check_archive(files, manifest):
    records = [read_record(content, i + 1) for i, content in enumerate(read_members(files[ARCHIVE]))]
    hops = manifest["hops"]
    check(len(records) == 1 + 2 * len(hops), f"{ARCHIVE}: number of records")
    for i, hop in enumerate(hops):
        (asked, request), (answered, response) = records[1 + 2 * i:3 + 2 * i]
        at = f"hop {i + 1}"
        check((asked["warc-type"], answered["warc-type"]) == ("request", "response"), f"{at}: kinds of records")
        check(asked["warc-target-uri"] == answered["warc-target-uri"] == hop["url"], f"{at}: WARC-Target-URI")
        status, last, head, body = split_response(response, at)
        check(hex256(request) == hop["request_sha256"], f"{at}: request")
        check(hex256(head) == hop["response_head_sha256"] and status == hop["status"], f"{at}: head")
        check(hex256(body) == hop["response_body_sha256"], f"{at}: body")
    length, decoded = decoded_body(last, body)
    check(length == manifest["wire_bytes"], "body: wire_bytes")
    if decoded is not None:
        check(hex256(decoded) == manifest["content_sha256"] and len(decoded) == manifest["decoded_bytes"], "body: content_sha256")
    return decoded is not None


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], capture_output=True, check=False)


def check_certificates(files, manifest):
    data = files["evidence/connections.json"]
    check(hex256(data) == manifest["connections_sha256"], "connections: SHA-256")
    connections = read_object(data, "connections")["connections"]
    check(len(connections) == len(manifest["hops"]), "connections: not one for each hop")
    for i, (one, hop) in enumerate(zip(connections, manifest["hops"])):
        at = f"certificates of hop {i + 1}"
        chain = [base64.b64decode(text, validate=True) for text in one["tls"]["certificates"]]
        host = urllib.parse.urlsplit(hop["url"]).hostname
        check(one["url"] == hop["url"] and one["hostname"] == host, f"connection {i + 1}: for another host")
        check(chain and [hex256(der) for der in chain] == manifest["certificates_sha256"][i], f"{at}: SHA-256")
        when = datetime.datetime.fromisoformat(one["started_at"].replace("Z", "+00:00"))
        with tempfile.TemporaryDirectory() as folder:
            paths = [temporary(folder, openssl("x509", "-inform", "DER", "-in", temporary(folder, der)).stdout) for der in chain]
            named = openssl("x509", "-in", paths[0], "-noout", "-checkhost", host).stdout
            check(b"does match certificate" in named, f"{at}: for another host")
            for signed, signer in zip(paths, paths[1:] or paths):
                run = openssl("verify", "-partial_chain", "-trusted", signer, "-attime", str(int(when.timestamp())), signed)
                check(run.returncode == 0, f"{at}: {run.stderr.decode(errors='replace').strip()}")


def check_stamps(files, receipts, roots):
    names = sorted(name for name in files if re.fullmatch(r"evidence/timestamps/\d+\.tsr", name))
    check(names, "timestamps: the package has none")
    for name in names:
        note = files[name.replace(".tsr", ".note")]
        check(note.decode() == receipts["capture"]["checkpoint"] == receipts["result"]["checkpoint"], f"{name}: about another head")
        time = check_timestamp(receipts["capture"]["inclusion"]["tree_size"], note, files[name], roots)
        check(receipts["capture"]["attestation"]["ts_ms"] <= time.timestamp() * 1000 + 300_000, f"{name}: stamped before its receipts")
    return f"; {len(names)} timestamps by openssl ts"


# The result ------------------------------------------------------------------------------------------------------------------

def check_result(result, receipts, manifest):
    receipt = result["receipt"]
    bare = {name: value for name, value in result.items() if name != "receipt"}
    envelope = base64.b64decode(receipt["canonical_envelope_base64"], validate=True)
    check(receipt["attestation"] == receipts["result"]["attestation"], "result: its receipt is not in the package")
    check(receipt["attestation"]["requested_by"] == "source-verification", "result: requested_by")
    check(envelope == canonical(receipt["envelope"]), "result: canonical_envelope")
    check(hex256(envelope) == receipt["attestation"]["subject_sha256"], "result: subject_sha256")
    check(hex256(canonical(bare)) == receipt["envelope"]["result_sha256"], "result: result_sha256")
    source, text = result["source"], result["source"]["normalized_text"]
    shared = {"source": {name: value for name, value in source.items() if name != "requested_url"}}
    shared.update({name: result[name] for name in ("source_identity", "limits", "checked_at")})
    check(hex256(canonical(shared)) == manifest["observation_sha256"], "result: observation_sha256")
    check(hex256(text.encode()) == source["text_sha256"] == manifest["text_sha256"], "result: text_sha256")
    for item in (item for claim in result.get("claims", [result]) for item in claim["evidence"]):
        check(text[item["start"]:item["end"]] == item["quote"], f"result: quote {item['evidence_id']}")
    return manifest["result_sha256"] == receipt["envelope"]["result_sha256"]


def main():
    parser = argparse.ArgumentParser(description="Check an evidence package and its result.")
    parser.add_argument("package")
    parser.add_argument("result")
    parser.add_argument("--pin", required=True, type=pin, help="KEYID:HEX of the key that signed the receipts")
    parser.add_argument("--vkey", help="verifier key of the checkpoints")
    parser.add_argument("--timestamp-ca", help="trusted roots of time-stamp authorities (PEM): the replies of the package are checked")
    options = parser.parse_args()
    files = read_package(options.package)
    check_lists(files)
    receipts = read_object(files["evidence/receipts.json"], "receipts")
    for name in ("capture", "result"):
        check_receipt(receipts[name], options.pin, options.vkey, f"receipt of the {name}")
    capture = receipts["capture"]["attestation"]
    check((capture["requested_by"], capture["label"]) == ("source-capture", None), "manifest: its receipt is not of a capture")
    signed = files["evidence/manifest.json"]
    check(hex256(signed) == capture["subject_sha256"], "manifest: SHA-256 is not the one that its receipt attests")
    manifest = read_object(signed, "manifest")
    check(canonical(manifest) == signed and manifest["type"] == "countersign.source-capture", "manifest: form")
    is_decoded = check_archive(files, manifest)
    check_certificates(files, manifest)
    with open(options.result, "rb") as file:
        is_first = check_result(read_object(file.read(), "result"), receipts, manifest)
    stamped = check_stamps(files, receipts, options.timestamp_ca) if options.timestamp_ca else ""
    print(f"good: {len(manifest['hops'])} hops, receipts {receipts['result']['attestation']['serial']} and {capture['serial']}"
          f"{'' if is_decoded else '; body under brotli, not decoded'}{'' if is_first else '; the manifest is of another purchase'}"
          f"{'' if options.vkey else '; the signature of the log was not checked'}{stamped}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, KeyError, TypeError, AttributeError, ValueError, zlib.error, zipfile.BadZipFile) as error:
        # A file that cannot be read is not a forged one. Of an error about what a file holds, Python names no file.
        if getattr(error, "filename", None) is not None:
            print(f"cannot read {error.filename}: {error.strerror}", file=sys.stderr)
            sys.exit(2)
        sys.exit(f"BAD {type(error).__name__}: {error}")
