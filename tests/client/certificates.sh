#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes what the TLS tests need, in a folder: two authorities (ca, other-ca), one server key with
# certificates for this machine, for another name, and one that has expired, and a client's key with a
# certificate of each authority.
#
#     certificates.sh FOLDER
set -euo pipefail

cd "$1"
exec 2>log

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key"; }

authority() { # authority NAME
    key "$1"
    openssl req -x509 -new -key "$1.key" -subj "/CN=$1" -days 30 -out "$1.crt" \
        -addext 'keyUsage=critical,keyCertSign,cRLSign'
}

sign() { # sign KEY AUTHORITY NAME EXTENSIONS [DATES...]
    openssl req -new -key "$1.key" -subj "/CN=$3" -out "$3.csr"
    printf '%s\n' "$4" >"$3.ext"
    mkdir -p "$3.d"
    : >"$3.d/index"
    printf '[ca]\ndefault_ca=c\n[c]\ndatabase=%s.d/index\nnew_certs_dir=%s.d\nrand_serial=yes\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n' \
        "$3" "$3" >"$3.cnf"
    openssl ca -batch -notext -config "$3.cnf" -cert "$2.crt" -keyfile "$2.key" -in "$3.csr" -extfile "$3.ext" \
        -out "$3.crt" "${@:5}" >>log
}

authority ca
authority other-ca
key server
key client
sign server ca here 'subjectAltName=DNS:localhost,IP:127.0.0.1' -days 30
sign server ca elsewhere 'subjectAltName=DNS:elsewhere.example' -days 30
sign server ca expired 'subjectAltName=DNS:localhost,IP:127.0.0.1' -startdate 20200101000000Z -enddate 20200201000000Z
sign client ca client 'extendedKeyUsage=clientAuth' -days 30
sign client other-ca stranger 'extendedKeyUsage=clientAuth' -days 30
mkdir hashed
cp ca.crt hashed
openssl rehash hashed
openssl pkey -in client.key -aes128 -passout pass:word -out locked.key
