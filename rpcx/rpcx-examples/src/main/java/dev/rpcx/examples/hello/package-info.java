/** A service and a call, as in the paper: start at {@link dev.rpcx.examples.hello.HelloWorld}. */
package dev.rpcx.examples.hello;
