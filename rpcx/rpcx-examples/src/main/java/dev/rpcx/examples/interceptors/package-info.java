/** Shows metadata that travel beside the arguments. Start at {@link dev.rpcx.examples.interceptors.Tenants}. */
@NullMarked
package dev.rpcx.examples.interceptors;

import org.jspecify.annotations.NullMarked;
