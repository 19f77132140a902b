//! Client keys of descriptor entries.

/// Prefixes of client keys, by key of the entry.
const PREFIXES: [(&str, &str); 6] =
    [("remote_address", "ip"), ("ip", "ip"), ("user_id", "user"), ("user", "user"), ("api_key", "key"), ("org", "org")];

/// The client key of an entry: `user:42` for (`user`, `42`), `ip:192.0.2.1` for (`remote_address`, `192.0.2.1`), and
/// `tenant:acme` for (`tenant`, `acme`). The value of an entry `client_key` is a client key itself.
pub fn client_key(key: &str, value: &str) -> String {
    if key == "client_key" {
        return value.to_owned();
    }
    let prefix = PREFIXES.iter().find(|(name, _)| *name == key).map_or(key, |(_, prefix)| prefix);
    format!("{prefix}:{value}")
}

/// The client key of a whole descriptor: `tenant=acme,path=/orders`.
pub fn descriptor_key(entries: &[(&str, &str)]) -> String {
    let entry = |(key, value): &(&str, &str)| match value.is_empty() {
        true => (*key).to_owned(),
        false => format!("{key}={value}"),
    };
    entries.iter().map(entry).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::{client_key, descriptor_key};

    #[test]
    fn an_entry_names_a_client() {
        for (key, value, expected) in [
            ("user_id", "42", "user:42"),
            ("user", "42", "user:42"),
            ("remote_address", "192.0.2.1", "ip:192.0.2.1"),
            ("client_key", "key:abc", "key:abc"),
            ("tenant", "acme", "tenant:acme"),
        ] {
            assert_eq!(client_key(key, value), expected);
        }
        assert_eq!(descriptor_key(&[("tenant", "acme"), ("slow", "")]), "tenant=acme,slow");
    }
}
