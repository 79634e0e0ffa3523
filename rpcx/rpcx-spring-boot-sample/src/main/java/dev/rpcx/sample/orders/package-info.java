/** Service that takes orders, and calls the stock service. */
@NullMarked
package dev.rpcx.sample.orders;

import org.jspecify.annotations.NullMarked;
