/** Shows a service and a call, as in the paper. Start at {@link dev.rpcx.examples.hello.HelloWorld}. */
package dev.rpcx.examples.hello;
