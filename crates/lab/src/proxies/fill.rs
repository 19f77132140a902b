//! Replaces the ports of a configuration.

/// Replaces each of these numbers wherever it is a whole number. Panics for one that does not occur: a configuration that
/// changed without its test would use the wrong port.
pub(super) fn fill(text: &str, ports: &[(u16, u16)]) -> String {
    let mut used = vec![false; ports.len()];
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let is_digit = rest.starts_with(|first: char| first.is_ascii_digit());
        let end = rest.find(|other: char| other.is_ascii_digit() != is_digit).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        match ports.iter().position(|(port, _)| is_digit && part.parse() == Ok(*port)) {
            Some(at) => {
                used[at] = true;
                filled.push_str(&ports[at].1.to_string());
            }
            None => filled.push_str(part),
        }
        rest = after;
    }
    for ((port, _), used) in ports.iter().zip(used) {
        assert!(used, "port {port} is not in the configuration:\n{text}");
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_whole_numbers_and_nothing_it_has_put_in() {
        let text = "listen 127.0.0.1:80; a 8080 b:18080 80s é80";
        assert_eq!(fill(text, &[(80, 8080), (8080, 1)]), "listen 127.0.0.1:8080; a 1 b:18080 8080s é8080");
    }

    #[test]
    #[should_panic(expected = "port 81 is not in the configuration")]
    fn a_port_that_is_not_there_is_a_mistake() {
        fill("listen 80", &[(81, 1)]);
    }
}
