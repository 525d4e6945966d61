#!/usr/bin/env bash
# Signs a statement with openssl, as docs/src/results.md shows: the signature holds, and an altered byte of the statement,
# the signature or the evidence is rejected. Usage: tests/interop/sign.sh CONFORMANT. Needs openssl 3 or later.
set -euo pipefail
conformant=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
die() { printf 'FAIL %s\n' "$*" >&2; exit 1; }
openssl version | grep -qE '^OpenSSL [3-9]' || { echo '   SKIPPED: openssl 3 or later is not installed'; exit 0; }

"$conformant" run --reference --quiet --filter 'flow/read-flows/*' --keep-evidence run.gz \
  --report json=run.json --report statement=statement.json >/dev/null

# The recipe of the page.
openssl genpkey -algorithm ED25519 -out key.pem
openssl pkey -in key.pem -pubout -out public.pem
openssl pkeyutl -sign -inkey key.pem -rawin -in statement.json -out statement.sig
holds() { # STATEMENT SIGNATURE PUBLIC
  openssl pkeyutl -verify -pubin -inkey "$3" -rawin -in "$1" -sigfile "$2" >/dev/null 2>&1
}
verified() { "$conformant" verify "$1" --evidence "$2" --require 'flow/read-flows' >/dev/null 2>&1; }

holds statement.json statement.sig public.pem || die 'the signature of the statement is rejected'
verified statement.json run.gz || die 'the signed statement is not verified by its evidence'

# Writes a file with one byte changed.
altered() { # FILE
  python3 - "$1" <<'PY'
import pathlib, sys
data = bytearray(pathlib.Path(sys.argv[1]).read_bytes())
data[len(data) // 2] ^= 1
pathlib.Path("altered").write_bytes(data)
PY
}
altered statement.json
! holds altered statement.sig public.pem || die 'an altered statement is accepted'
altered statement.sig
! holds statement.json altered public.pem || die 'an altered signature is accepted'
altered run.gz
! verified statement.json altered || die 'altered evidence is accepted'
openssl genpkey -algorithm ED25519 -out other.pem
openssl pkey -in other.pem -pubout -out other-public.pem
! holds statement.json statement.sig other-public.pem || die 'the signature holds for another key'
echo 'ok   a signed statement is verified; an altered byte and another key are rejected'
