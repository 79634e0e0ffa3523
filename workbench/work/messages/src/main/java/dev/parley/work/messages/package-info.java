/**
 * The work {@code messages}: services that echo the two data models of kazanavicius, figure 2, along a line or gathered
 * from a tree or star.
 *
 * <p>Starting point: {@link dev.parley.work.messages.MessagesWork}. Threads: calls run on the transport's thread;
 * neighbours called at once, on virtual threads. Never imports a transport.
 */
@NullMarked
package dev.parley.work.messages;

import org.jspecify.annotations.NullMarked;
