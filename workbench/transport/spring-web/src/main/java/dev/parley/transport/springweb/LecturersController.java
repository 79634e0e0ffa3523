package dev.parley.transport.springweb;

import dev.parley.spi.Handler;
import dev.parley.spi.lecturers.Checked;
import dev.parley.spi.lecturers.Credentials;
import dev.parley.spi.lecturers.Lecturers;
import dev.parley.spi.lecturers.NameAsked;
import dev.parley.spi.lecturers.NestedProfiles;
import dev.parley.spi.lecturers.Page;
import dev.parley.spi.lecturers.Profile;
import dev.parley.spi.lecturers.ProfileAsked;
import dev.parley.spi.lecturers.Profiles;
import dev.parley.spi.lecturers.Token;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** The contract {@code lecturers} as routes. */
@RestController
@RequestMapping("/lecturers")
class LecturersController {
    private final Handler handler;

    LecturersController(Handler handler) {
        this.handler = handler;
    }

    @PostMapping("/authenticate")
    Token authenticate(@RequestBody Credentials request) {
        return handler.handle(Lecturers.AUTHENTICATE, request);
    }

    @PostMapping("/check")
    Checked check(@RequestBody Token request) {
        return handler.handle(Lecturers.CHECK, request);
    }

    @PostMapping("/flat")
    Profiles flat(@RequestBody Page request) {
        return handler.handle(Lecturers.FLAT, request);
    }

    @PostMapping("/nested")
    NestedProfiles nested(@RequestBody Page request) {
        return handler.handle(Lecturers.NESTED, request);
    }

    @PostMapping("/profile")
    Profile profile(@RequestBody ProfileAsked request) {
        return handler.handle(Lecturers.PROFILE, request);
    }

    @PostMapping("/named")
    Profiles named(@RequestBody NameAsked request) {
        return handler.handle(Lecturers.NAMED, request);
    }
}
