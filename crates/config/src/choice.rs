//! Settings that are one word of a few.

/// A value with a name, changed by name.
///
/// Implementors promise that [`Choice::choose`] accepts exactly [`Choice::names`], and that [`Choice::name`] is one of
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
    /// Where a check of forward-auth says what the client asked for. One place: clients could fill in the others.
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
    /// What the body of a refusal by status tells.
    RefusalDetail {
        /// What concerns the caller that is refused.
        Public = "public",
        /// All of the plain answer.
        Full = "full",
    }
}

choice! {
    /// How log lines are written.
    LogFormat {
        /// For eyes: time, level, message, fields.
        People = "people",
        /// For programs: one JSON object per line.
        Json = "json",
    }
}

choice! {
    /// Which log lines are written: this level and those before it.
    LogLevel {
        /// What needs somebody.
        Error = "error",
        /// What may need somebody.
        Warn = "warn",
        /// What happened.
        Info = "info",
        /// What happened inside.
        Debug = "debug",
    }
}
