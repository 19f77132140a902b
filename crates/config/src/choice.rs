//! Settings with a fixed set of words.

/// A value with a name, changed by name.
///
/// Implementors promise that [`SettingChoice::choose`] accepts exactly [`SettingChoice::names`], and that [`SettingChoice::name`] is one of
/// them.
pub trait SettingChoice {
    /// All names.
    fn names(&self) -> &'static [&'static str];
    /// The name of this one.
    fn name(&self) -> &'static str;
    /// Becomes the one of this name; false if there is none.
    fn choose(&mut self, name: &str) -> bool;
}

macro_rules! choice {
    ($(#[$doc:meta])* $type:ident { $($(#[$help:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[$help])* $variant,)* }

        impl SettingChoice for $type {
            fn names(&self) -> &'static [&'static str] {
                &[$($name),*]
            }

            fn name(&self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            fn choose(&mut self, name: &str) -> bool {
                match name {
                    $($name => *self = Self::$variant,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

pub(super) use choice;

choice! {
    /// Where a check of forward-auth carries the original request. One source only: clients could forge the others.
    AuthSource {
        /// There is no forward-auth.
        Off = "off",
        /// X-Forwarded-Method and X-Forwarded-Uri.
        Forwarded = "forwarded",
        /// X-Original-Method and X-Original-URI, or X-Original-URL.
        Original = "original",
        /// The method of the check, and its path below `/v1/auth`.
        Path = "path",
    }
}

choice! {
    /// The detail of a denial by status.
    RefusalDetail {
        /// What concerns the denied caller.
        Public = "public",
        /// All of the plain response.
        Full = "full",
    }
}

choice! {
    /// Whether usage of quotas survives a restart.
    Durability {
        /// It is written to a journal.
        On = "on",
        /// It ends with the process.
        Off = "off",
    }
}

choice! {
    /// How log lines are written.
    LogFormat {
        /// For people: time, level, message, fields.
        People = "people",
        /// For programs: one JSON object per line.
        Json = "json",
    }
}

choice! {
    /// Which log lines are written: this level and those before it.
    LogLevel {
        /// Needs an operator.
        Error = "error",
        /// May need an operator.
        Warn = "warn",
        /// Events.
        Info = "info",
        /// Internal events.
        Debug = "debug",
    }
}
