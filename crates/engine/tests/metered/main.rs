//! Meters: amounts by name, one reservation for several of them, its extensions and its settlement.

mod decisions;
mod extensions;
mod nodes;
mod oracle;
mod rig;
mod settlements;
