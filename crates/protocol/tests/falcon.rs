//! FALCON's linear layers: equal to the convolution in every variant, with the operations of the tables, and hiding what they must.

mod clear;
mod counts;
mod encrypted;
mod equality;
mod privacy;
