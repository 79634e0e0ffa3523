package dev.rpcx.examples.kotlin

import dev.rpcx.Client
import dev.rpcx.Method
import dev.rpcx.RPCXClient
import dev.rpcx.RPCXServer
import dev.rpcx.RegistryServer
import dev.rpcx.Server
import java.util.concurrent.CompletableFuture

data class Item(val name: String, val count: Int)

data class Order(val customer: String, val items: List<Item>, val note: String?)

@RPCXServer("shop")
class Shop {
    @Method("place")
    fun place(order: Order): String = "${order.customer} orders ${order.items.size} items, note ${order.note}"
}

@RPCXClient(remoteServerName = "shop")
interface ShopClient {
    fun place(order: Order): String

    @Method("place")
    fun placeLater(order: Order): CompletableFuture<String>
}

fun main() {
    Server(0, RegistryServer.registry(Shop())).start().use { server ->
        Client.standard().use { client ->
            val shop = client.create(ShopClient::class.java, "127.0.0.1", server.port())
            println(shop.place(Order("Ann", listOf(Item("tea", 2)), null)))
            println(shop.placeLater(Order("Bob", listOf(), "ring twice")).join())
        }
    }
}
