// Package chromium tests the page of package latchkeyweb as a person sees it, in a Chromium, and the site of docs/. It makes the
// pictures of docs/web.md. It is a module of its own, so that users of the page do not get a browser's driver.
package chromium
