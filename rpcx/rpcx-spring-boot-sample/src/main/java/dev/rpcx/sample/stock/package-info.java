/** Service that knows what is on the shelves. */
@NullMarked
package dev.rpcx.sample.stock;

import org.jspecify.annotations.NullMarked;
