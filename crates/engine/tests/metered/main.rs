//! Meters: amounts by name, one reservation for several of them, its extensions and its settlement.

mod decisions;
mod extensions;
mod nodes;
mod rig;
mod settlements;
