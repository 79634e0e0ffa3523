package dev.rpcx.scanned;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;

/** A service that a test finds by scanning its package. */
@RPCXServer("scanned")
final class Scanned {
    @Method
    String hello(String name) {
        return "Hello " + name;
    }
}
