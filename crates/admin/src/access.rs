//! Who may call an endpoint, and in which namespaces.

use tollgate_control::record::Role;

/// The token that an endpoint needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminAccess {
    /// None.
    Open,
    /// A token of this role or a stronger one.
    Needs(Role),
}

/// The namespaces that an endpoint acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceScope {
    /// One: `?namespace=`, else the token's only one, else `default`.
    Namespace,
    /// The one that is named, else all that the token is for.
    Namespaces,
    /// None.
    Nothing,
    /// All: not for tokens that are limited to some.
    Everything,
}
