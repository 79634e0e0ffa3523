/**
 * RPCX in Spring Boot: {@code @RPCXServer} classes of the application are beans and published, {@code @RPCXClient} interfaces are beans to be
 * injected; where the application makes a bean of such a type itself, that is the only one. Starting points: {@link dev.rpcx.spring.RPCXAutoConfiguration}, {@link dev.rpcx.spring.RPCXProperties}.
 */
@NullMarked
package dev.rpcx.spring;

import org.jspecify.annotations.NullMarked;
