"""What customers see: views, forms, texts, languages and error pages."""
