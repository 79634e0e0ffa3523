/** The service that takes orders, and asks the stock. */
@NullMarked
package dev.rpcx.sample.orders;

import org.jspecify.annotations.NullMarked;
