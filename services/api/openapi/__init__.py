"""The API's contract as an OpenAPI 3.1 document, generated from its schemas and structs, and the page that shows it."""
