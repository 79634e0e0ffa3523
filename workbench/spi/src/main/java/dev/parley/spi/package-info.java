/**
 * What can be plugged into the workbench: a {@link dev.parley.spi.Transport} carries calls between services, a
 * {@link dev.parley.spi.Work} says what a service does with them. Both are found with {@link java.util.ServiceLoader}.
 *
 * <p>Starting points: {@link dev.parley.spi.TransportProvider} to add a technology, {@link dev.parley.spi.Work} to add
 * a work. A transport knows only {@link dev.parley.spi.Contract contracts}; it never sees a load or another transport.
 * Imports the model.
 */
@NullMarked
package dev.parley.spi;

import org.jspecify.annotations.NullMarked;
