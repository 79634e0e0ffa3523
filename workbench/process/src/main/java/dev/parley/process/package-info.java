/**
 * Child processes that end with their standard input: each reads a pipe from here, and ends when the pipe is closed, so
 * that nothing is left over however this process ends.
 *
 * <p>Starting points: {@link dev.parley.process.Child}, and {@link dev.parley.process.Packaged} for what one is started
 * from. A shutdown hook ends all of them at once on Ctrl-C. Imports nothing but the JDK.
 */
@NullMarked
package dev.parley.process;

import org.jspecify.annotations.NullMarked;
