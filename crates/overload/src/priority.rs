//! Classes of importance: under overload the lowest goes first, health checks last (RELIABILITY P26).
//!
//! The order is strict and there is no aging: a request of a lower class is never admitted while one of a higher class
//! waits, however long it has waited. Aging would let a flood of unimportant requests delay important ones, which is
//! what classes are there to prevent; a waiting request is bounded by its maximum wait instead.

use tollgate_rules::problem::{ParseError, quote};

/// A class, by its rank: a higher one is more important.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// The lowest class.
    pub const LOWEST: Priority = Priority(0);
    /// Health checks of the gateway and of what stands in front of it: above every class.
    pub const HEALTH: Priority = Priority(u8::MAX);

    /// The class of this rank, from 0, the lowest.
    pub const fn of_rank(rank: u8) -> Priority {
        Priority(rank)
    }

    /// The rank, as in `Request::priority`.
    pub const fn rank(self) -> u8 {
        self.0
    }
}

/// The classes of an installation, and their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priorities {
    /// The lowest first.
    names: Vec<String>,
    default: Priority,
}

impl Default for Priorities {
    /// `critical`, `default`, `sheddable`, `test`.
    fn default() -> Priorities {
        let names = ["test", "sheddable", Priorities::DEFAULT, "critical"].map(str::to_owned).into();
        Priorities { names, default: Priority(2) }
    }
}

impl Priorities {
    /// Most classes.
    pub const COUNT_MAX: usize = 16;
    /// The class of requests that name none. Without a class of this name, the middle one.
    pub const DEFAULT: &'static str = "default";

    /// The name of [`Priority::HEALTH`], which is a class of every installation.
    pub const HEALTH: &'static str = "health";

    /// Classes by name, the most important first.
    pub fn new<S: Into<String>>(highest_first: impl IntoIterator<Item = S>) -> Result<Priorities, ParseError> {
        let mut names: Vec<String> = highest_first.into_iter().map(Into::into).collect();
        if names.is_empty() || names.len() > Priorities::COUNT_MAX {
            let message = format!("{} classes of priority", names.len());
            return Err(ParseError::new(message, format!("name 1 to {}", Priorities::COUNT_MAX)));
        }
        names.reverse();
        for (index, name) in names.iter().enumerate() {
            check_name(name)?;
            if names.iter().skip(index + 1).any(|other| other == name) {
                return Err(ParseError::new(format!("{} is named twice", quote(name)), "name each class once"));
            }
        }
        let middle = names.len() / 2;
        let default = names.iter().position(|name| name == Priorities::DEFAULT).unwrap_or(middle);
        Ok(Priorities { names, default: Priority(default as u8) })
    }

    /// The class of this name; [`HEALTH`](Priority::HEALTH) has its own.
    pub fn find(&self, name: &str) -> Option<Priority> {
        if name == Priorities::HEALTH {
            return Some(Priority::HEALTH);
        }
        self.names.iter().position(|known| known == name).map(|rank| Priority(rank as u8))
    }

    /// The name of a class, for logs and metrics.
    pub fn name(&self, priority: Priority) -> &str {
        self.names.get(usize::from(priority.0)).map_or(Priorities::HEALTH, String::as_str)
    }

    /// The class of requests that name none.
    pub fn unnamed(&self) -> Priority {
        self.default
    }

    /// The most important class that is not for health checks.
    pub fn highest(&self) -> Priority {
        Priority(self.names.len().saturating_sub(1) as u8)
    }

    /// The names, the most important first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().rev().map(String::as_str)
    }

    /// How many classes there are.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

fn check_name(name: &str) -> Result<(), ParseError> {
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name == Priorities::HEALTH {
        let help = "leave it out: it is above all others, and routes may name it";
        return Err(ParseError::new("`health` is the class of health checks", help));
    }
    match (1..=64).contains(&name.len()) && name.bytes().all(is_one) {
        true => Ok(()),
        false => {
            let help = "letters, digits, `.`, `_` and `-`, at most 64";
            Err(ParseError::new(format!("{} is not a name", quote(name)), help))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_ordered_and_health_is_above_all() {
        let standard = Priorities::default();
        let ranks = ["test", "sheddable", "default", "critical"].map(|name| standard.find(name).unwrap());
        assert!(ranks.is_sorted() && ranks[3] < Priority::HEALTH);
        assert_eq!((standard.unnamed(), standard.highest()), (ranks[2], ranks[3]));
        assert_eq!((standard.name(ranks[0]), standard.name(Priority::HEALTH)), ("test", "health"));
        assert_eq!(standard.find("health"), Some(Priority::HEALTH), "a route may name it");
        assert_eq!(standard.names().collect::<Vec<_>>(), ["critical", "default", "sheddable", "test"]);
        assert_eq!(Priorities::new(["critical", "default", "sheddable", "test"]), Ok(standard));
    }

    #[test]
    fn own_classes_default_to_the_middle() {
        let own = Priorities::new(["gold", "silver", "bronze"]).unwrap();
        assert_eq!(own.name(own.unnamed()), "silver");
        assert_eq!(own.find("default"), None);
        assert_eq!(own.name(own.highest()), "gold");
    }

    #[test]
    fn names_are_checked() {
        assert!(Priorities::new(Vec::<String>::new()).is_err());
        assert!(Priorities::new((0..17).map(|number| number.to_string())).is_err());
        for names in [["a", "a"], ["a", ""], ["health", "a"], ["a", "b c"]] {
            assert!(Priorities::new(names).is_err(), "{names:?}");
        }
    }
}
