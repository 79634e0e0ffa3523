package dev.rpcx.codec;

import static org.assertj.core.api.Assertions.assertThat;

import dev.rpcx.CompiledElsewhere;
import dev.rpcx.CompiledElsewhere.Said;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests data classes, types with question marks, and interfaces as Kotlin's compiler writes them. */
@Timeout(180)
class KotlinTest {
    private static final String SHOP = """
            package shop

            import dev.rpcx.Method
            import dev.rpcx.RPCXClient
            import dev.rpcx.RPCXServer
            import dev.rpcx.schema.Field
            import java.net.URI
            import java.time.LocalDate

            enum class Mood { UNKNOWN, GOOD }

            sealed interface Payment
            data class Card(val number: String, val month: Int) : Payment
            data class Transfer(val iban: String) : Payment

            data class Person(
                val name: String,
                val nick: String?,
                val age: Int,
                val height: Double?,
                val isAdult: Boolean,
                val born: LocalDate?,
                val tags: List<String>,
                val others: Set<String>?,
                val scores: Map<String, Int>,
                val payments: List<Payment>,
                val friend: Person?,
                val mood: Mood?,
                val page: URI?
            )

            data class Numbered(@Field(3) val first: String, @Field(1) var second: String)

            data class Defaults(val text: String = "x", val number: Int = 0)

            class Bean {
                var text: String? = null
                var isOpen: Boolean = false
            }

            @RPCXServer("shop")
            class Shop {
                @Method fun person(person: Person): Person = person
                @Method fun nick(person: Person): String? = person.nick
                @Method fun friend(person: Person?): Person? = person?.friend
                @Method fun numbered(numbered: Numbered): Numbered = numbered
                @Method fun defaults(defaults: Defaults): Defaults = defaults
                @Method fun bean(bean: Bean): Bean = bean
                @Method fun name(person: Person): String = person.name
            }

            @RPCXClient(remoteServerName = "shop")
            interface ShopClient {
                fun person(person: Person): Person
                fun nick(person: Person): String?
                fun friend(person: Person?): Person?
                fun numbered(numbered: Numbered): Numbered
                fun defaults(defaults: Defaults): Defaults
                fun bean(bean: Bean): Bean
                fun name(person: Person): String
            }

            object Calls {
                @JvmStatic
                fun made(shop: ShopClient): List<String> {
                    val ada = Person("Ada", null, 36, null, true, null, listOf("a"), null, mapOf("x" to 1),
                        listOf(Card("1", 2), Transfer("DE")), null, null, null)
                    val bob = ada.copy(nick = "", height = 1.8, born = LocalDate.of(1815, 12, 10), others = setOf(),
                        friend = ada, mood = Mood.UNKNOWN, page = URI("https://a/b"))
                    val bean = shop.bean(Bean().also { it.isOpen = true })
                    return listOf(
                        (shop.person(ada) == ada).toString(),
                        (shop.person(bob) == bob).toString(),
                        shop.nick(ada).toString(),
                        "'" + shop.nick(bob) + "'",
                        (shop.friend(bob) == ada).toString(),
                        shop.friend(ada).toString(),
                        shop.friend(null).toString(),
                        shop.numbered(Numbered("1", "2")).toString(),
                        shop.defaults(Defaults()).toString(),
                        bean.text.toString() + " " + bean.isOpen,
                        shop.name(ada))
                }
            }
            """;

    @TempDir
    private Path folder;

    @Test
    void whatKotlinWritesIsMapped() throws Exception {
        Path source = Files.writeString(folder.resolve("Shop.kt"), SHOP);
        Path classes = folder.resolve("classes");
        String compiler = CompiledElsewhere.libraries("kotlin", "trove4j-", "annotations-");
        String classPath =
                CompiledElsewhere.path(CompiledElsewhere.RPCX, CompiledElsewhere.libraries("kotlin-stdlib-"));
        Said said = CompiledElsewhere.run(List.of(
                CompiledElsewhere.program("java"),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-cp",
                compiler,
                "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler",
                "-no-stdlib",
                "-no-reflect",
                "-jvm-target",
                "17",
                "-classpath",
                classPath,
                "-d",
                classes.toString(),
                source.toString()));
        assertThat(said.exit()).as(said.text()).isZero();
        assertThat(CompiledElsewhere.calls(classes, "shop"))
                .containsExactly(
                        "true",
                        "true",
                        "null",
                        "''",
                        "true",
                        "null",
                        "null",
                        "Numbered(first=1, second=2)",
                        "Defaults(text=x, number=0)",
                        "null true",
                        "Ada");
    }
}
