//! The reply to `INFO`.

use tollgate_resp::RespValue;

/// The text of the reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info(String);

impl Info {
    /// Reads a reply; `None` if it is not text.
    pub(crate) fn of(reply: &RespValue) -> Option<Info> {
        Some(Info(String::from_utf8_lossy(reply.text()?).into_owned()))
    }

    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// The value of a numeric field.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }

    /// True if the server is a replica.
    pub(crate) fn is_replica(&self) -> bool {
        self.field("role") == Some("slave")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text =
            "# Server\r\nredis_version:7.0.15\r\n\r\nrole:slave\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n";
        let info = Info::of(&RespValue::Text(text.into())).unwrap();
        assert_eq!(info.field("redis_version"), Some("7.0.15"));
        assert_eq!(info.field("maxmemory_policy"), Some("noeviction"));
        assert_eq!(info.number("maxmemory"), Some(0));
        assert_eq!(info.field("version"), None);
        assert_eq!(info.field("redis"), None);
        assert!(info.is_replica());
        assert_eq!(Info::of(&RespValue::Nil), None);
    }
}
