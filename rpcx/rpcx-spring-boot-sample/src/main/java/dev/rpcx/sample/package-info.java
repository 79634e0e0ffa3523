/**
 * Two Spring Boot services, of which one calls the other by RPCX, and the program that starts both and places an order.
 * Starting point: {@link Shop}.
 */
@NullMarked
package dev.rpcx.sample;

import org.jspecify.annotations.NullMarked;
