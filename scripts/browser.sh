# To be sourced: $browser is Chromium, empty where there is none. Some wrappers of it
# complain on standard error.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)

browser_version() { "$browser" --version 2>/dev/null | head -1; }
