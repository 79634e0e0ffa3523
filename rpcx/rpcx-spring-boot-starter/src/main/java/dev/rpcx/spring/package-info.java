/**
 * RPCX in Spring Boot. Each {@code @RPCXServer} class of the application becomes a bean and is published, and each
 * {@code @RPCXClient} interface becomes a bean that can be injected; if the application makes a bean of such a type
 * itself, that is the only one. Starting points: {@link dev.rpcx.spring.RPCXAutoConfiguration},
 * {@link dev.rpcx.spring.RPCXProperties}.
 */
@NullMarked
package dev.rpcx.spring;

import org.jspecify.annotations.NullMarked;
