/**
 * The test kit that every technology passes: a class of JUnit tests to extend.
 *
 * <p>Starting point: {@link dev.parley.transport.contract.TransportContract}. Runs real servers and clients of the technology, one of them
 * in a process of its own. Never imports a transport.
 */
@NullMarked
package dev.parley.transport.contract;

import org.jspecify.annotations.NullMarked;
