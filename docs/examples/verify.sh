EXPECTED=$(openssl dgst -sha256 -hmac "$MIZAN_WEBHOOK_SECRET" -r < body.json | cut -d ' ' -f 1)
if [ "$EXPECTED" = "$SIGNATURE" ]; then echo genuine; else echo forged; fi
