"""What mkdocs does not do by itself. See mkdocs.yml."""

import base64
import hashlib
import io
import posixpath
import re
import tarfile
import urllib.request

SOURCE = "https://github.com/latchkey-go/latchkey/blob/main/"
MERMAID = "https://registry.npmjs.org/mermaid/-/mermaid-11.17.2.tgz"
MERMAID_SHA512 = "V6K3C8EBdEsPFZXSKMJe6ppQOENxuHARr9GvHX4hh47lAbhMRD9qf4oEK7LoaRQxULMa80/qt5gHO73aCleBBg=="


def on_page_markdown(markdown, page, **_):
    """Links that leave docs/ lead to the forge, and what tests say of a block of code is not shown."""

    def link(found):
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), found[1]))
        return found[0] if target.startswith("docs/") else "](" + SOURCE + target + found[2] + ")"

    markdown = re.sub(r"\]\((\.\.[^)#]*)(#[^)]*)?\)", lambda f: link([f[0], f[1], f[2] or ""]), markdown)
    return re.sub(r"(?m)^```go kit$", "```go", markdown)


def on_post_build(config, **_):
    """The library that draws is part of the site."""
    with urllib.request.urlopen(MERMAID, timeout=60) as reply:
        package = reply.read()
    if base64.b64encode(hashlib.sha512(package).digest()).decode() != MERMAID_SHA512:
        raise SystemExit("mermaid is not what it was")
    with tarfile.open(fileobj=io.BytesIO(package)) as files:
        script = files.extractfile("package/dist/mermaid.min.js").read()
    with open(config["site_dir"] + "/mermaid.js", "wb") as file:
        file.write(script)
