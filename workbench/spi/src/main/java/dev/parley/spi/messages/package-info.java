/**
 * The contract of the work {@code messages}: the two data models of kazanavicius, figure 2, echoed.
 *
 * <p>Starting point: {@link dev.parley.spi.messages.Messages}. Immutable records, equal by value.
 */
@NullMarked
package dev.parley.spi.messages;

import org.jspecify.annotations.NullMarked;
