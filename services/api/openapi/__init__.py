"""The API's contract as an OpenAPI 3.1 document, made from the schemas that validate and the structs that answer."""
