/** Shows what a message can hold, and where null is allowed. Start at {@link dev.rpcx.examples.types.Letters}. */
@NullMarked
package dev.rpcx.examples.types;

import org.jspecify.annotations.NullMarked;
