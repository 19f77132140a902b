//! A node among others: what each way of sharing promises, over a simulated network with delays, losses and deaths.

mod world;

mod behind;
mod deny;
mod hot;
mod mixed;
