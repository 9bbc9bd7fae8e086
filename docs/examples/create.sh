curl --silent --show-error --max-time 10 "$MIZAN_URL/payment-intents" \
  --header "X-API-Key: $MIZAN_API_KEY" \
  --header "Authorization: Bearer $MIZAN_ACCESS_TOKEN" \
  --header "Content-Type: application/json" \
  --header "Accept: application/json" \
  --data '{
    "merchant_reference": "order-1044",
    "amount": 25500,
    "currency": "LYD",
    "description": "Two bags of coffee",
    "return_url": "https://shop.example/orders/1044",
    "customer": {"external_id": "customer-7"},
    "metadata": {"branch": "tripoli"}
  }'
