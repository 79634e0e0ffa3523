package dev.parley.transport.openfeign;

import dev.parley.spi.lecturers.Checked;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.NameAsked;
import dev.parley.spi.lecturers.NestedProfiles;
import dev.parley.spi.lecturers.Page;
import dev.parley.spi.lecturers.Profile;
import dev.parley.spi.lecturers.ProfileAsked;
import dev.parley.spi.lecturers.Profiles;
import dev.parley.spi.lecturers.Token;
import feign.Request;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;

/** The contract {@code lecturers} as Feign calls it. */
@FeignClient(name = "lecturers", path = "/lecturers")
interface LecturersClient {
    @PostMapping("/authenticate")
    Token authenticate(@RequestBody Credentials request, Request.Options timeouts);

    @PostMapping("/check")
    Checked check(@RequestBody Token request, Request.Options timeouts);

    @PostMapping("/flat")
    Profiles flat(@RequestBody Page request, Request.Options timeouts);

    @PostMapping("/nested")
    NestedProfiles nested(@RequestBody Page request, Request.Options timeouts);

    @PostMapping("/profile")
    Profile profile(@RequestBody ProfileAsked request, Request.Options timeouts);

    @PostMapping("/named")
    Profiles named(@RequestBody NameAsked request, Request.Options timeouts);
}
