import assert from "node:assert/strict";
import { test } from "node:test";
import { clientAddress, parseAddress, parseNetwork } from "#dist/middleware/address.js";
import { endpointOf, foldCase, hasDotSegment, pathOf } from "#dist/middleware/path.js";
import { tollgate } from "tollgate/next";

test("addresses have one spelling, and nothing else is one", () => {
  const same = (a: string, b: string): void => assert.deepEqual(parseAddress(a), parseAddress(b), `${a} ${b}`);
  same("192.0.2.1", "::ffff:192.0.2.1");
  same("2001:db8::17", "2001:0DB8:0:0:0:0:0:17");
  same("::", "0:0:0:0:0:0:0:0");
  same("1::", "1:0:0:0:0:0:0:0");
  same("64:ff9b::192.0.2.33", "64:ff9b::c000:221");
  for (const text of [
    "", " ", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1", "1.2.3.4:80", "[::1]", "::1::", ":::", ":", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7::8:9", "12345::", "g::", "::1%eth0", "1.2.3.4::", "::1.2.3.4:5", "unknown", "1.2.3.٤",
  ]) {
    assert.equal(parseAddress(text), undefined, text);
  }
});

test("networks hold addresses to the bit", () => {
  const trusted = ["10.0.0.0/9", "2001:db8::/33", "192.0.2.1"].map(parseNetwork);
  const walked = (peer: string): string | undefined => clientAddress(peer, "198.51.100.1", trusted);
  for (const peer of ["10.127.255.255", "::ffff:10.0.0.1", "2001:db8:7fff::1", "192.0.2.1"]) assert.equal(walked(peer), "198.51.100.1", peer);
  for (const peer of ["10.128.0.0", "11.0.0.0", "2001:db8:8000::1", "192.0.2.2", "::10.0.0.1"]) assert.equal(walked(peer), peer);
  for (const network of ["10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0/8", "10.0.0.0/8/8", "x"]) {
    assert.throws(() => parseNetwork(network), /trustedProxies/, network);
  }
});

test("the walk over X-Forwarded-For ends at the first address that is not trusted, or at what is none", () => {
  const trusted = ["127.0.0.0/8", "10.0.0.0/8"].map(parseNetwork);
  const walked = (fields: string | undefined): string | undefined => clientAddress("127.0.0.1", fields, trusted);
  assert.equal(walked(undefined), "127.0.0.1");
  assert.equal(walked("6.6.6.6, 9.9.9.9"), "9.9.9.9");
  assert.equal(walked("6.6.6.6, 9.9.9.9 ,10.1.1.1"), "9.9.9.9");
  assert.equal(walked("10.2.2.2, 10.1.1.1"), "10.2.2.2");
  assert.equal(walked("9.9.9.9, unknown, 10.1.1.1"), "10.1.1.1");
  assert.equal(walked(""), "127.0.0.1");
  assert.equal(clientAddress("203.0.113.1", "9.9.9.9", trusted), "203.0.113.1");
  assert.equal(clientAddress(undefined, "9.9.9.9", trusted), undefined);
  assert.equal(clientAddress("fe80::1%eth0", undefined, trusted), "fe80::1");
});

test("a path is what is routed, not decoded", () => {
  assert.equal(pathOf("/a%2Fb?x=/c"), "/a%2Fb");
  assert.equal(pathOf("/a#b"), "/a");
  assert.equal(pathOf("http://host:80/a/b?c"), "/a/b");
  assert.equal(pathOf("HTTPS://[::1]/a"), "/a");
  for (const target of ["http://user@host/a", "http://host\\x/a", "http://ho st/a", "ftp://host/a", "*", "a", ""]) assert.equal(pathOf(target), target);
  assert.equal(endpointOf("HEAD", "/a"), "GET /a");
});

test("folding reaches escaped letters, and letters that fold to ASCII", () => {
  assert.equal(foldCase("/API/%4Frders/%C3%89"), "/api/orders/%c3%a9");
  assert.equal(foldCase("/%E2%84%AAey"), "/key"); // the sign of kelvin
  assert.equal(foldCase("/a%2Fb%zz%FF"), "/a%2fb%zz%ff");
});

test("dot segments are found in every spelling", () => {
  for (const path of ["/a/.", "/a/..", "/./a", "/a/%2e%2E/b", "/a/.%2e", ".."]) assert.ok(hasDotSegment(path), path);
  for (const path of ["/a/...", "/a.b", "/a/.b", "/a/b.", "/a/..;x", "/%2e%2e%2e", "/"]) assert.ok(!hasDotSegment(path), path);
});

test("Next's middleware wants to know who is asking", () => {
  assert.throws(() => tollgate({}), /address/);
});
