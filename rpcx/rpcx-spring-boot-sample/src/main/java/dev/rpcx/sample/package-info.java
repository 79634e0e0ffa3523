/** Two Spring Boot services that call each other by RPCX, and the program that starts both and places an order. Starting point: {@link Shop}. */
@NullMarked
package dev.rpcx.sample;

import org.jspecify.annotations.NullMarked;
