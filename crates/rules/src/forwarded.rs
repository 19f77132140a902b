//! The grammar of Forwarded (RFC 7239): elements between commas, pairs between semicolons, tokens or quoted text.
//!
//! Strict, and for the field as a whole: a quote that a client opens would otherwise swallow the element that its
//! proxy appends. Such a field has an odd number of quotes, or text behind a closing one, and is refused.

use smallvec::SmallVec;

/// The node of one element: the value of its `for`; empty if there is none.
pub type ForwardedNode = SmallVec<[u8; 46]>;

/// The `for` of each element, in order; `None` if the field does not follow the grammar.
pub fn nodes(field: &[u8]) -> Option<SmallVec<[ForwardedNode; 4]>> {
    let mut nodes = SmallVec::new();
    let mut rest = field;
    loop {
        let (node, after) = element(rest)?;
        nodes.push(node);
        match after.split_first() {
            None => return Some(nodes),
            Some((_, after)) => rest = after, // a comma
        }
    }
}

/// One element, up to its comma or the end. An empty one has no node.
fn element(field: &[u8]) -> Option<(ForwardedNode, &[u8])> {
    let mut node = None;
    let mut rest = field;
    loop {
        rest = rest.trim_ascii_start();
        if let None | Some(b',') = rest.first() {
            return Some((node.unwrap_or_default(), rest));
        }
        let (name, value, after) = pair(rest)?;
        if name.eq_ignore_ascii_case(b"for") {
            if node.is_some() {
                return None;
            }
            node = Some(value);
        }
        rest = after.trim_ascii_start();
        match rest.split_first() {
            Some((b';', after)) => rest = after,
            None | Some((b',', _)) => {}
            Some(_) => return None,
        }
    }
}

/// `name=value`, and what follows it.
fn pair(field: &[u8]) -> Option<(&[u8], ForwardedNode, &[u8])> {
    let (name, rest) = token(field)?;
    let rest = rest.strip_prefix(b"=")?;
    match rest.strip_prefix(b"\"") {
        Some(quoted) => quoted_text(quoted).map(|(value, rest)| (name, value, rest)),
        None => token(rest).map(|(value, rest)| (name, ForwardedNode::from_slice(value), rest)),
    }
}

fn token(field: &[u8]) -> Option<(&[u8], &[u8])> {
    // Proxies write `for=192.0.2.1:80` and `for=[2001:db8::1]` without the quotes that the grammar asks for.
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:[]".contains(byte);
    let end = field.iter().position(|byte| !is_token(byte)).unwrap_or(field.len());
    field.split_at_checked(end).filter(|(token, _)| !token.is_empty())
}

/// The text up to the closing quote, without escapes.
fn quoted_text(field: &[u8]) -> Option<(ForwardedNode, &[u8])> {
    let mut value = ForwardedNode::new();
    let mut rest = field;
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((value, rest)),
            b'\\' => {
                let (&escaped, after) = rest.split_first()?;
                value.push(escaped);
                rest = after;
            }
            _ => value.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(field: &str) -> Option<Vec<String>> {
        let text = |node: ForwardedNode| String::from_utf8(node.to_vec()).unwrap();
        nodes(field.as_bytes()).map(|nodes| nodes.into_iter().map(text).collect())
    }

    #[test]
    fn reads_elements_pairs_and_quotes() {
        let read = |field| texts(field).unwrap();
        assert_eq!(read("for=192.0.2.60;proto=http;by=203.0.113.43"), ["192.0.2.60"]);
        assert_eq!(read("For=\"[2001:db8:cafe::17]:4711\""), ["[2001:db8:cafe::17]:4711"]);
        assert_eq!(read("for=192.0.2.43 , for=198.51.100.17"), ["192.0.2.43", "198.51.100.17"]);
        assert_eq!(read("for=\"a,b;c=\\\"d\\\"\";x=1,for=e"), ["a,b;c=\"d\"", "e"]);
        assert_eq!(read("proto=https, ,for=a;"), ["", "", "a"]);
    }

    #[test]
    fn refuses_what_is_ambiguous() {
        for field in ["for=\"a", "for=\"a\"b", "for=a;for=b", "for", "for=", "=a", "for=a b", "for=\"\\", "a=\u{e9}"] {
            assert_eq!(texts(field), None, "{field}");
        }
    }
}
