curl --silent --show-error --max-time 10 "$MIZAN_URL/payment-intents/$UUID" \
  --header "X-API-Key: $MIZAN_API_KEY" \
  --header "Authorization: Bearer $MIZAN_ACCESS_TOKEN" \
  --header "Accept: application/json"
